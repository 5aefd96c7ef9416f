"""An agent of three commands in a container of its own; its diff is graded in a fresh one. Needs Docker or bubblewrap."""

import acidtest as at

COMMANDS = ["cat solution.py", "printf 'def add(a, b):\\n    return a + b\\n' > solution.py", "submit"]


def main(**options: object) -> None:
    env = at.make(at.load_tasks("toy", task_ids=["toy/add_sound"]), env="shell", max_steps=10, **options)
    text, info = env.reset(seed=0)
    print(text)
    for command in COMMANDS:
        text, reward, _, _, info = env.step(command)
        print(f"$ {command}\n{text}")
    print("reward", reward, "valid", info["reward_valid"])
    env.close()


if __name__ == "__main__":
    main()
