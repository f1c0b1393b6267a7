"""Checks the files of ops/ by their schemas, and prints as JSON what they start, so that a test starts the same.

Arguments: the folder of ops, the schema of compose files. Variables of compose.yml come from the environment."""

import json
import os
import re
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.32"
VARIABLE = re.compile(r"\$\{(\w+):\?[^}]*\}")


def filled(text):
    return VARIABLE.sub(lambda match: os.environ[match.group(1)], text)


def compose(folder, schema):
    document = yaml.safe_load((folder / "compose.yml").read_text())
    jsonschema.validate(document, json.loads(schema.read_text()))
    # What is mounted lies beside the file.
    for service in document["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert not source.startswith(".") or (folder / source).is_file(), f"{source} is missing"
        for config in service.get("configs", []):
            assert config["source"] in document["configs"], config
    cache = document["services"]["cache"]
    contents = {name: filled(config["content"]) for name, config in document["configs"].items()}
    files = {config["target"]: contents[config["source"]] for config in cache["configs"]}
    kind, *health = cache["healthcheck"]["test"]
    assert kind == "CMD", kind
    return {"image": cache["image"], "arguments": cache["command"], "files": files, "health": health, "probes": []}


def kubernetes(folder, name):
    documents = list(yaml.safe_load_all((folder / "access.yaml").read_text()))
    documents += yaml.safe_load_all((folder / name).read_text())
    for document in documents:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    secrets = {document["metadata"]["name"]: document["stringData"] for document in documents if document["kind"] == "Secret"}
    workload = documents[-1]["spec"]
    pod = workload["template"]
    labels = pod["metadata"]["labels"].items()
    assert workload["selector"]["matchLabels"].items() <= labels
    [container] = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for document in documents:
        if document["kind"] == "Service":
            assert document["spec"]["selector"].items() <= labels
            assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports.keys()
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    files = {}
    for mount in container["volumeMounts"]:
        if secret := volumes[mount["name"]].get("secret"):
            files |= {f"{mount['mountPath']}/{key}": text for key, text in secrets[secret["secretName"]].items()}
    kinds = [kind for kind in ("startupProbe", "readinessProbe", "livenessProbe") if kind in container]
    asked = [container[kind]["httpGet"] for kind in kinds]
    assert {ports[probe["port"]] for probe in asked} == {11280}
    probes = [probe["path"] for probe in asked]
    return {"image": container["image"], "arguments": container["args"], "files": files, "health": [], "probes": probes}


def main():
    folder, schema = map(Path, sys.argv[1:])
    manifests = [kubernetes(folder / "kubernetes", name) for name in ("deployment.yaml", "daemonset.yaml")]
    print(json.dumps([compose(folder, schema), *manifests]))


main()
