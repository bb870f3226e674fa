"""Resource tokens: the type names by which the engine calls resources.

A rule with a misspelt token never fires, and no error says so. So a test compares each token with the classes that the
SDK registers. The pack itself imports no SDK of a cloud: a program in another language has none.
"""

import re
from typing import Final


def aws(module: str, class_name: str) -> str:
    """The token of pulumi_aws.<module>.<class_name>."""
    return f"aws:{module}/{class_name[0].lower()}{class_name[1:]}:{class_name}"


def _azure(module: str, class_name: str) -> str:
    """The token of pulumi_azure_native.<module>.<class_name>."""
    return f"azure-native:{module}:{class_name}"


def _kubernetes(api_version: str, class_name: str) -> str:
    """The token of a resource of pulumi_kubernetes."""
    return f"kubernetes:{api_version}:{class_name}"


#: Tokens of custom resources by group and kind; the version of the API is in the token alone.
_CUSTOM: Final[dict[tuple[str, str], str]] = {}
_OF_KUBERNETES = re.compile(r"kubernetes:([^:/]+)/[^:/]+:([^:]+?)(Patch)?")
# Of a class for one version of the API: in the SDK, and in an SDK that was made for that version alone.
_OF_AZURE = re.compile(r"azure-native(?:_[a-z0-9]+_v\w+)?:([^:/]+)(?:/v\w+)?:([^:]+)")


def custom_resource(api_version: str, kind: str) -> str:
    """The token of a Kubernetes custom resource, as the Kubernetes provider forms it."""
    token = _kubernetes(api_version, kind)
    _CUSTOM[(api_version.split("/")[0], kind)] = token
    return token


def plain(token: str) -> str:
    """Return the token by which the rules know a resource, whatever version of its API the program names."""
    if found := _OF_AZURE.fullmatch(token):
        return f"azure-native:{found[1]}:{found[2]}"
    if found := _OF_KUBERNETES.fullmatch(token):
        known = _CUSTOM.get((found[1], found[2]))
        return f"{known}{found[3] or ''}" if known else token
    return token


def with_patch(token: str) -> tuple[str, str]:
    """The token of a Kubernetes resource, and that of its server-side patch, which changes an object of others."""
    return token, f"{token}Patch"


#: karpstack's component for a cluster that is there; it makes nothing.
EXISTING_CLUSTER = "karpstack:eks:ExistingCluster"
#: The engine's own resource for the stack itself; there is one in each.
STACK = "pulumi:pulumi:Stack"

ADDON = aws("eks", "Addon")
CLUSTER = aws("eks", "Cluster")
NODE_GROUP = aws("eks", "NodeGroup")
LAUNCH_TEMPLATE = aws("ec2", "LaunchTemplate")
SECURITY_GROUP = aws("ec2", "SecurityGroup")
MANAGED_PREFIX_LIST = aws("ec2", "ManagedPrefixList")
MANAGED_PREFIX_LIST_ENTRY = aws("ec2", "ManagedPrefixListEntry")
DEFAULT_SECURITY_GROUP = aws("ec2", "DefaultSecurityGroup")
SECURITY_GROUP_RULE = aws("ec2", "SecurityGroupRule")
SECURITY_GROUP_INGRESS_RULE = aws("vpc", "SecurityGroupIngressRule")
SUBNET = aws("ec2", "Subnet")
TAG = aws("ec2", "Tag")
VPC = aws("ec2", "Vpc")
EVENT_RULE = aws("cloudwatch", "EventRule")
EVENT_TARGET = aws("cloudwatch", "EventTarget")
QUEUE = aws("sqs", "Queue")
QUEUE_POLICY = aws("sqs", "QueuePolicy")
IAM_POLICY = aws("iam", "Policy")
IAM_GROUP_POLICY = aws("iam", "GroupPolicy")
IAM_ROLE = aws("iam", "Role")
IAM_ROLE_POLICY = aws("iam", "RolePolicy")
IAM_USER_POLICY = aws("iam", "UserPolicy")
IAM_POLICY_ATTACHMENT = aws("iam", "PolicyAttachment")
IAM_GROUP_POLICY_ATTACHMENT = aws("iam", "GroupPolicyAttachment")
IAM_ROLE_POLICY_ATTACHMENT = aws("iam", "RolePolicyAttachment")
IAM_USER_POLICY_ATTACHMENT = aws("iam", "UserPolicyAttachment")
#: Those of a role, a user or a group, all at once.
IAM_ATTACHMENTS_EXCLUSIVE = tuple(aws("iam", f"{of}PolicyAttachmentsExclusive") for of in ("Role", "User", "Group"))
AKS_CLUSTER = _azure("containerservice", "ManagedCluster")
AKS_AGENT_POOL = _azure("containerservice", "AgentPool")
AZURE_DIAGNOSTICS = _azure("monitor", "DiagnosticSetting")
AZURE_FEDERATED_CREDENTIAL = _azure("managedidentity", "FederatedIdentityCredential")
AZURE_IDENTITY = _azure("managedidentity", "UserAssignedIdentity")
AZURE_NETWORK = _azure("network", "VirtualNetwork")
AZURE_RESOURCE_GROUP = _azure("resources", "ResourceGroup")
AZURE_ROLE_ASSIGNMENT = _azure("authorization", "RoleAssignment")
AZURE_ROLE_DEFINITION = _azure("authorization", "RoleDefinition")
AZURE_SECURITY_GROUP = _azure("network", "NetworkSecurityGroup")
AZURE_SECURITY_RULE = _azure("network", "SecurityRule")
HELM_RELEASE = _kubernetes("helm.sh/v3", "Release")
SERVICE = _kubernetes("core/v1", "Service")
DAEMON_SET = _kubernetes("apps/v1", "DaemonSet")
DEPLOYMENT = _kubernetes("apps/v1", "Deployment")
STATEFUL_SET = _kubernetes("apps/v1", "StatefulSet")
API_SERVICE = _kubernetes("apiregistration.k8s.io/v1", "APIService")
MUTATING_WEBHOOKS = _kubernetes("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
VALIDATING_WEBHOOKS = _kubernetes("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
NODE_POOL = custom_resource("karpenter.sh/v1", "NodePool")
NODE_OVERLAY = custom_resource("karpenter.sh/v1alpha1", "NodeOverlay")
EC2_NODE_CLASS = custom_resource("karpenter.k8s.aws/v1", "EC2NodeClass")
AKS_NODE_CLASS = custom_resource("karpenter.azure.com/v1beta1", "AKSNodeClass")


def all_of_them() -> list[str]:
    """Return the resource types that rules read, in alphabetical order."""
    named = [value for name, value in globals().items() if name.isupper() and not name.startswith("_")]
    flat = {token for value in named for token in (value if isinstance(value, tuple) else (value,))}
    patches = {patch for token in (NODE_POOL, EC2_NODE_CLASS) for patch in with_patch(token)}
    return sorted((flat | patches) - {STACK})
