"""What a scenario may not ask for, because it would give its author power over the nodes of a real cluster.

Pods follow the Pod Security Standard "baseline" of Kubernetes, except for ports of the host: they open no node, and
count where pods are placed. Their volumes follow "restricted", so that no disk of others is one. A node class that a
scenario makes or changes keeps what protects its nodes: it boots an image of Amazon or the account without other user
data, with the role of the stack, in its subnets and security groups; it asks for tokens of the metadata service,
encrypts its volumes, makes none of a snapshot, and has no public address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

# https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_SYSCTLS: Final = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    }
)
_SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
# https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
_VOLUMES: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)
# The fields of a claim for a new disk. All others name an existing volume, claim or snapshot.
_NEW_DISK: Final = frozenset({"accessModes", "resources", "storageClassName", "volumeMode"})
# Drivers of disks, and their parameters that name nothing of others and take no protection away.
_DRIVERS: Final = (
    *("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "disk.csi.azure.com", "kubernetes.io/no-provisioner"),
)
_PARAMETERS: Final = frozenset({"csi.storage.k8s.io/fstype", "iops", "skuName", "throughput", "type"})
# A Service within the cluster, for the story's own pods.
_SERVICE: Final = frozenset({"clusterIP", "ports", "publishNotReadyAddresses", "selector", "sessionAffinity", "type"})
_PORTS: Final = range(1024, 10_000)  # below are those of the system, above those of Kubernetes and its NodePorts
# What a PersistentVolume's spec has beside the disk.
_NO_DISK: Final = frozenset(
    {
        *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "volumeAttributesClassName", "volumeMode"),
    }
)
_OF_THE_NODE: Final = ("hostPath", "local")
# What of a node class is the stack's: who the nodes are, and where.
_OF_THE_STACK: Final = (
    *("userData", "role", "instanceProfile", "subnetSelectorTerms", "securityGroupSelectorTerms", "vnetSubnetID"),
    "capacityReservationSelectorTerms",
)
# What protects nodes, so that it may be replaced by something as safe, but not removed.
_PROTECTS: Final = ("blockDeviceMappings", "metadataOptions", "fipsMode")
# Where images have their root volume, by their family; where Bottlerocket has images and containers.
_ROOT, _ROOT_OF_WINDOWS, _DATA_OF_BOTTLEROCKET = "/dev/xvda", "/dev/sda1", "/dev/xvdb"
# What a volume of the machine's own files may be, which stories in several zones need: a folder made for them alone.
_PUBLIC: Final = "/aws/service/"  # where AWS publishes parameters
_FOLDER: Final = re.compile(r"/tmp/[A-Za-z0-9][A-Za-z0-9._-]*/?")  # noqa: S108  a path on nodes


def pods(template: Mapping[str, Any]) -> Iterator[str]:
    """Where a workload's template leaves the standard: paths within its `spec.template`."""
    metadata, spec = _object(template, "metadata"), _object(template, "spec")
    for key, value in _object(metadata, "annotations").items():
        if key.startswith(_APP_ARMOR) and not str(value).startswith(("runtime/default", "localhost/")):
            yield f"metadata.annotations.{key}"
    yield from (f"spec.{key}" for key in _HOST if spec.get(key))
    yield from _security_context("spec.securityContext", _object(spec, "securityContext"))
    for path, volume in _each(spec, "volumes"):
        yield from (f"spec.{path}.{key}" for key in sorted(map(str, volume.keys() - _VOLUMES - {"name"})))
        template = _object(_object(volume, "ephemeral"), "volumeClaimTemplate")
        yield from (f"spec.{path}.ephemeral.volumeClaimTemplate.{found}" for found in claim(_object(template, "spec")))
    for kind in _CONTAINERS:
        for path, container in _each(spec, kind):
            yield from (f"spec.{path}.{found}" for found in _container(container))


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    yield from _security_context("securityContext", _object(container, "securityContext"))
    for path, port in _each(container, "ports"):
        if port.get("hostIP"):
            yield f"{path}.hostIP"
        if port.get("hostPort") and port["hostPort"] not in _PORTS:
            yield f"{path}.hostPort"
    handlers = [(name, _object(container, name)) for name in _PROBES]
    hooks = _object(container, "lifecycle")
    handlers += [(f"lifecycle.{name}", _object(hooks, name)) for name in ("postStart", "preStop")]
    for where, handler in handlers:
        for way in ("httpGet", "tcpSocket"):
            if _object(handler, way).get("host"):
                yield f"{where}.{way}.host"


def _security_context(where: str, context: Mapping[str, Any]) -> Iterator[str]:
    selinux, sysctls = _object(context, "seLinuxOptions"), [one for _, one in _each(context, "sysctls")]
    added = _object(context, "capabilities").get("add") or ()
    wrong = {
        "privileged": bool(context.get("privileged")),
        "capabilities.add": not (isinstance(added, list | tuple) and _CAPABILITIES.issuperset(map(str, added))),
        "procMount": context.get("procMount") not in (None, "", "Default"),
        "windowsOptions.hostProcess": bool(_object(context, "windowsOptions").get("hostProcess")),
        "seccompProfile.type": _object(context, "seccompProfile").get("type") == "Unconfined",
        "appArmorProfile.type": _object(context, "appArmorProfile").get("type") == "Unconfined",
        "seLinuxOptions.type": (selinux.get("type") or "") not in _SELINUX_TYPES,
        "seLinuxOptions.user": bool(selinux.get("user")),
        "seLinuxOptions.role": bool(selinux.get("role")),
        "sysctls": any(one.get("name") not in _SYSCTLS for one in sysctls),
    }
    yield from (f"{where}.{key}" for key, is_wrong in wrong.items() if is_wrong)


def volume(spec: Mapping[str, Any]) -> Iterator[str]:
    """Paths on a node that a PersistentVolume's spec opens and that are not a folder of the story's own."""
    for kind in _OF_THE_NODE:
        path = str(_object(spec, kind).get("path", ""))
        if kind in spec and not _FOLDER.fullmatch(path):
            yield path


def claim(spec: Mapping[str, Any]) -> Iterator[str]:
    """Find the fields of a PersistentVolumeClaim's spec that ask for an existing volume, claim or snapshot."""
    yield from (f"spec.{key}" for key in sorted(map(str, spec.keys() - _NEW_DISK)))


def storage_class(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What of a StorageClass may open a share of others, use a Secret of others, or makes disks less safe."""
    if manifest.get("provisioner") not in _DRIVERS:
        yield "provisioner"
    parameters = _object(manifest, "parameters")
    encrypts = {"encrypted"} if str(parameters.get("encrypted")).lower() == "true" else set()
    yield from (f"parameters.{key}" for key in sorted(map(str, parameters.keys() - _PARAMETERS - encrypts)))


def service(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What of a Service may take traffic from outside the story, by annotations of controllers too."""
    spec, annotations = _object(manifest, "spec"), _object(_object(manifest, "metadata"), "annotations")
    yield from (f"spec.{key}" for key in sorted(map(str, spec.keys() - _SERVICE)))
    if spec.get("type") not in (None, "ClusterIP"):
        yield "spec.type"
    if spec.get("clusterIP") not in (None, "", "None"):
        yield "spec.clusterIP"
    yield from (f"metadata.annotations.{key}" for key in sorted(map(str, annotations)))


def foreign_volume_sources(spec: Mapping[str, Any]) -> Iterator[str]:
    """Find the fields of a PersistentVolume's spec that may use a disk or a share of another owner."""
    yield from (f"spec.{key}" for key in sorted(map(str, spec.keys() - _NO_DISK - set(_OF_THE_NODE))))
    if not _object(spec, "claimRef").get("name"):
        yield "spec without claimRef"


def node_class(patch: Mapping[str, Any]) -> Iterator[str]:
    """Where a merge patch of a node class's spec weakens its machines: paths."""
    yield from (key for key in _OF_THE_STACK if key in patch)
    yield from (key for key in _PROTECTS if key in patch and not patch[key])
    # Without a value, the subnet decides.
    if patch.get("associatePublicIPAddress", False) is not False:
        yield "associatePublicIPAddress"
    if patch.get("amiFamily") == "Custom":  # whose volumes are the image's
        yield "amiFamily"
    if _object(patch, "kubelet").get("clusterDNS"):
        yield "kubelet.clusterDNS"
    options = _object(patch, "metadataOptions")
    if options.get("httpTokens") not in (None, "required"):
        yield "metadataOptions.httpTokens"
    if options.get("httpPutResponseHopLimit") not in (None, 1):
        yield "metadataOptions.httpPutResponseHopLimit"
    if options.get("httpProtocolIPv6") not in (None, "disabled"):
        yield "metadataOptions.httpProtocolIPv6"
    if patch.get("fipsMode") == "Disabled":
        yield "fipsMode"
    yield from _volumes(patch)
    for path, term in _each(patch, "amiSelectorTerms"):
        # Anybody can share an image. Those of Amazon and of the account are found by alias, name, tags and parameter.
        if term.get("id"):
            yield f"{path}.id"
        if term.get("owner") not in (None, "amazon", "self"):
            yield f"{path}.owner"
        if not str(term.get("ssmParameter", _PUBLIC)).startswith(_PUBLIC):
            yield f"{path}.ssmParameter"
    if "security" in patch and _object(patch, "security").get("encryptionAtHost") is not True:
        yield "security.encryptionAtHost"


def _volumes(patch: Mapping[str, Any]) -> Iterator[str]:
    mappings = list(_each(patch, "blockDeviceMappings"))
    for path, mapping in mappings:
        disk = _object(mapping, "ebs")
        if disk.get("encrypted") is not True:
            yield f"{path}.ebs.encrypted"
        if disk.get("snapshotID"):
            yield f"{path}.ebs.snapshotID"
        if disk.get("kmsKeyID"):
            yield f"{path}.ebs.kmsKeyID"
    if mappings and not _volumes_of_the_image(patch) <= {one.get("deviceName") for _, one in mappings}:
        yield "blockDeviceMappings without the root volume"


def _volumes_of_the_image(patch: Mapping[str, Any]) -> set[str]:
    """The devices that stay as the image has them, and not encrypted, where no mapping names them."""
    aliases = [str(term.get("alias", "")) for _, term in _each(patch, "amiSelectorTerms")]
    family = next((one for one in (str(patch.get("amiFamily", "")), *aliases) if one), "").lower()
    if family.startswith("windows"):
        return {_ROOT_OF_WINDOWS}
    return {_ROOT, _DATA_OF_BOTTLEROCKET} if family.startswith("bottlerocket") else {_ROOT}


def _object(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object at a key; an empty one for anything else, which the API server refuses."""
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _each(parent: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and object of each entry of a list."""
    entries = parent.get(key)
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, Mapping):
            yield f"{key}.{index}", entry
