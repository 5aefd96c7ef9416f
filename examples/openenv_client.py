"""A client of `acidtest serve toy`: one episode over WebSocket."""

from openenv.core.generic_client import GenericEnvClient


def main(url: str = "http://127.0.0.1:8000", task_id: str = "toy/add_sound") -> float | None:
    with GenericEnvClient(base_url=url).sync() as env:
        print(env.reset(task_id=task_id).observation["text"])
        result = env.step({"text": "```python\ndef add(a, b):\n    return a + b\n```"})
        seen = result.observation
        print("reward", result.reward, "valid", seen["reward_valid"], "incident", seen["incident"] or "none")
        return result.reward


if __name__ == "__main__":
    main()
