"""Answer by hand what audit and repair ask about the tasks of examples/r2e: requests.jsonl to responses.jsonl.

    python examples/r2e_answers.py DIR

Run it whenever a command with `--llm files:DIR` ends with exit code 8, then the same command again. Nothing is made up
for programs that `r2e_answers.toml` does not know (mutants): the judge says "undecided" there, and no test is written.
"""

import json
import sys
import tomllib
from pathlib import Path

TASKS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["task"]
FOLDER = "r2e_tests"


def answer(purpose: str, text: str, asked: str) -> dict[str, object] | None:
    """The answer to one question; None where the task is none of ours. text: all of it, asked: its last part."""
    task = next((task for task in TASKS if task["title"] in text), None)
    if task is None:
        return None
    changed = next(
        line.strip() for line in task["replace"].splitlines() if line not in task["search"].splitlines()
    )
    about_it = changed in asked
    test = task["test"].lstrip("\n")
    if purpose == "attack":
        edit = {name: task[name] for name in ("path", "search", "replace")}
        return {"candidates": [{
            "kind": task["kind"], "description": task["description"], "wrong_behaviour": task["wrong"],
            "wrong_input": task["input"], "edits": [edit],
        }]}  # fmt: skip
    if purpose == "judge":
        return judged(task) if about_it else UNDECIDED
    if purpose == "witness":
        return {"test": test if about_it else "", "citation": task["quote"], "why": task["wrong"]}
    if purpose == "specified":
        known = any(
            line.strip() in asked for line in test.splitlines() if line.strip().startswith("def test_")
        )
        return {"answer": "yes" if known else "undecided", "quote": task["quote"], "why": task["wrong"]}
    if purpose == "augment":
        name = f"{FOLDER}/test_hardened_1.py"
        names = [line.split("(")[0][4:] for line in test.splitlines() if line.startswith("def test_")]
        command = next(line.split("`")[1] for line in text.splitlines() if line.startswith("EXISTING TESTS"))
        return {
            "files": [{"path": name, "content": test}], "ids": [f"{name}::{test_name}" for test_name in names],
            "command": command.replace(f"-rA {FOLDER}", f"-rA {name}"), "citations": [task["quote"]], "rationale": task["wrong"],
        }  # fmt: skip
    if purpose == "blocks":
        trace = f"{task['input']}: the test wants {task['expected']}, the program gives {task['observed']}"
        label = "blocks" if about_it else "undecided"
        return {"premises": [task["quote"]], "trace": trace, "conclusion": task["wrong"], "label": label}
    return None


UNDECIDED = {
    "premises": [],
    "traces": [],
    "conclusion": "not looked at",
    "counterexample": "",
    "label": "undecided",
}


def judged(task: dict[str, str]) -> dict[str, object]:
    premise = {"number": 1, "source": "text", "quote": task["quote"]}
    steps = f"the text asks for {task['expected']}, the change gives {task['observed']}"
    return {
        "premises": [premise], "traces": [{"input": task["input"], "steps": steps, "premises": [1]}],
        "conclusion": task["wrong"], "counterexample": f"{task['input']}: {steps}", "label": "incorrect",
    }  # fmt: skip


def main(folder: str) -> None:
    held = Path(folder) / "responses.jsonl"
    known = (
        {json.loads(line)["custom_id"] for line in held.read_text().splitlines()} if held.exists() else set()
    )
    count = 0
    with held.open("a") as file:
        for line in (Path(folder) / "requests.jsonl").read_text().splitlines():
            request = json.loads(line)
            params = request["params"]
            asked = params["messages"][-1]["content"]
            text = "\n".join([*(part["text"] for part in params["system"]), asked])
            given = answer(request["custom_id"].split("-")[0], text, asked)
            if given is not None and request["custom_id"] not in known:
                file.write(json.dumps({"custom_id": request["custom_id"], "json": given}) + "\n")
                count += 1
    print(f"{count} answers written to {held}")


if __name__ == "__main__":
    main(sys.argv[1])
