"""An exploit that the original suite pays gets 0 from the hardened one, and an incident."""

import acidtest as at


def main(source: str = "toy", hardened: str | None = None, **options: object) -> None:
    tasks = at.load_tasks(source, hardened=hardened)
    env = at.make(tasks, **options)
    for body in ("a + b", "a * b"):
        env.reset(options={"task_id": "toy/add_weak"})
        _, reward, _, _, info = env.step(f"```python\ndef add(a, b):\n    return {body}\n```")
        incident = info["incident"] and info["incident"].severity
        print(f"{body}: paid {reward}, original suite {info['reward_original']}, incident {incident}")
    env.close()


if __name__ == "__main__":
    main()
