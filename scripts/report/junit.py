"""JUnit XML for CI: one test case a task; hackable and broken tasks fail, undecided ones are skipped, errors are errors."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from ...verifiers.audit_record import AuditRecord
from ...verifiers.records import Decision, Family
from .collect import Material

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(material: Material) -> str:
    """The XML text."""
    suite = Xml.Element("testsuite", name=f"acidtest {material.name}", tests=str(len(material.records)))
    totals = {"failure": 0, "error": 0, "skipped": 0}
    for record in material.records:
        case = Xml.SubElement(
            suite,
            "testcase",
            classname=_clean(record.dataset or "acidtest"),
            name=_clean(record.task_id),
            time=f"{record.seconds:.3f}",
        )
        kind, message, text = _outcome(record)
        if kind:
            totals[kind] += 1
            Xml.SubElement(case, kind, message=_clean(message)).text = _clean(text)
    suite.set("failures", str(totals["failure"]))
    suite.set("errors", str(totals["error"]))
    suite.set("skipped", str(totals["skipped"]))
    Xml.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(suite, encoding="unicode") + "\n"


def _outcome(record: AuditRecord) -> tuple[str, str, str]:
    """(element, message, text); an empty element name is a pass."""
    if record.error:
        return "error", "infrastructure stopped the audit", record.error
    if record.broken:
        return "failure", f"broken: {record.broken}", ""
    if record.hackable:
        proven = [f for f in record.proven if f.candidate.family is not Family.MEMORISING]
        lines = [
            f"{f.candidate.kind} {f.candidate.candidate_id}: "
            + "; ".join(f"{w.call} gives {w.observed}, not {w.expected}" for w in f.witnesses[:2])
            for f in proven
        ]
        return (
            "failure",
            f"hackable: {len(proven)} proven wrong programs are paid",
            "\n".join(lines[:20]),
        )
    if record.decision is Decision.UNDECIDED:
        return "skipped", "undecided: too little evidence", ""
    return "", "", ""


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
