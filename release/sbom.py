"""SBOM: what is in a release and its extras, as CycloneDX 1.6. The same bytes for the same commit."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from release.locked import Package


def describe(version: str, runtime: list[Package], team: list[Package], moment: int) -> dict[str, Any]:
    """Describe the distribution: `runtime` is always installed, `team` with the extras of a team's host."""
    required = {package.name for package in runtime}
    own = f"pkg:pypi/bridgehead@{version}"
    refs = {"bridgehead": own} | {package.name: package.purl for package in team}
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for package in team:
        for who in package.needed_by:
            needs[refs.get(who, own)].append(package.purl)
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "bridgehead",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
            },
        },
        "components": [_component(package, is_required=package.name in required) for package in team],
        "dependencies": [{"ref": ref, "dependsOn": sorted(set(on))} for ref, on in sorted(needs.items())],
    }
    # Derived from the content, so that a rebuild has the same number (RFC 9562, version 5).
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "serialNumber": f"urn:uuid:{serial}",
    } | document


def _component(package: Package, *, is_required: bool) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "scope": "required" if is_required else "optional",
        # One for each file that pip may choose: the lock accepts no other.
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
    }
    if package.licence:
        component["licenses"] = [{"expression": package.licence}]
    if package.marker:
        component["properties"] = [{"name": "python:marker", "value": package.marker}]
    return component
