"""The simulated AWS account: one for the process, on a loopback port.

It composes the parts and starts them; what they do is in their modules. moto keeps its state in the process, so a
second account at the same time is refused, and `stop` forgets everything. Nothing is written to disk.
"""

from __future__ import annotations

import difflib
import os
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from karpstack.karpenter.price_file import PriceList
from karpstack.rehearsal.aws import cluster_time, descriptions, dispatch, load_balancers
from karpstack.rehearsal.aws.cloud import AccountView, AwsCloud
from karpstack.rehearsal.aws.ec2 import catalogue, instances, lookups, nat_gateways, prices
from karpstack.rehearsal.aws.ec2.fleet import Fleets
from karpstack.rehearsal.aws.ec2.images import Images
from karpstack.rehearsal.aws.ec2.prices import PriceTable
from karpstack.rehearsal.aws.eks.api import Eks
from karpstack.rehearsal.aws.eks.last_lines import LastLines
from karpstack.rehearsal.aws.eks.moto import MotoEks
from karpstack.rehearsal.aws.events.bus import EventBus
from karpstack.rehearsal.aws.iam import simulation
from karpstack.rehearsal.aws.iam.pod_credentials import PodIdentity, TokenReviewer
from karpstack.rehearsal.aws.iam.roles import Roles
from karpstack.rehearsal.aws.partitions import session
from karpstack.rehearsal.aws.patching import Patches
from karpstack.rehearsal.aws.quotas import Quotas
from karpstack.rehearsal.aws.server import Server
from karpstack.rehearsal.timing import Timing

if TYPE_CHECKING:
    from karpstack.rehearsal.aws.ec2.existing import Networks

#: The account's id unless another one is asked for.
ACCOUNT_ID = "123456789012"
# By which moto tells whose account a request is for; it looks at each request.
_MOTOS_ACCOUNT = "MOTO_ACCOUNT_ID"
# A harmless question to each service.
_QUESTIONS = {
    "ec2": "describe_vpcs",
    "iam": "list_roles",
    "kms": "list_keys",
    "logs": "describe_log_groups",
    "sqs": "list_queues",
    "events": "list_rules",
    "eks": "list_clusters",
}


#: The one that is played: ARNs and names are its everywhere here.
_PARTITION: Final = "aws"


def unknown_region(name: str) -> str:
    """Why nothing can be rehearsed in a region: key, consequence and fix; empty where it can."""
    known = {
        region: partition
        for partition in session().get_available_partitions()
        for region in session().get_available_regions("ec2", partition)
    }
    if known.get(name) == _PARTITION:
        return ""
    if name in known:
        return (
            f"aws:region = {name!r} is a region of the partition {known[name]}, of which nothing is played here: ARNs, "
            "names of services and prices are others there; rehearse the stack in one of the public partition, for "
            "example us-east-1"
        )
    near = difflib.get_close_matches(name, known, 1)
    return (
        f"aws:region = {name!r} is no region of AWS, so that nothing could be created there; "
        f"{f'did you mean {near[0]}?' if near else 'write for example us-east-1'}"
    )


class Account:
    """An AWS account in one region.

    Attributes:
        account_id: Its id.
        region: Where everything lies.
        timing: Simulated durations.
        prices: What instances cost.
        roles: IAM roles.
        eks: What moto's EKS lacks.
        fleet: CreateFleet: error injection and call log.
        images: Machine images, of which more can be published.
        quotas: What Service Quotas says.
        events: The event bus: interruptions and other events of AWS services.
    """

    _running: ClassVar[Account | None] = None

    def __init__(
        self,
        region: str,
        prices: Path,
        timing: Timing,
        *,
        used_spot: bool = False,
        account_id: str = ACCOUNT_ID,
        networks: Networks | None = None,
        fetched: PriceList | None = None,
    ) -> None:
        """An account that is empty, and new to spot instances unless `used_spot` says otherwise.

        `prices` is the table that `PriceTable.load` reads; `networks` are those that are there already; `fetched` are
        prices of its region that go before the table.
        """
        self.account_id = account_id
        self.region = region
        self.timing = timing
        self.prices = PriceTable.load(prices, fetched)
        self.roles = Roles(account_id)
        self.eks = Eks(account_id, region, self.roles)
        self.fleet = Fleets(self.prices, self.roles)
        self.images = Images(account_id, region)
        self.quotas = Quotas()
        self._used_spot = used_spot
        self._networks = networks
        self._turn = threading.RLock()
        self.events = EventBus(account_id, region, self._turn)
        self._last_lines = LastLines(account_id, region, timing.last_log_lines, self._turn)
        self._view = AccountView(account_id, region, self.eks, self.roles, timing)
        self._identity = PodIdentity(self.eks, self.roles, region, self._reviewer)
        self._server = Server(
            self._get_products, self._identity.credentials, self.roles.denial, self.eks.has_zonal_shift
        )
        self._patches = Patches()
        self._clouds: dict[str, AwsCloud] = {}
        self._tokens: dict[str, str] = {}
        self._session: Any = None
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Prepare moto and listen.

        Raises:
            RuntimeError: Another account runs in this process.
            NetworkFileError: The networks that are there already do not fit together.
        """
        self.prepare()
        self._server.start(self._patches)
        self._view.endpoint = self._server.endpoint

    def warm_up(self) -> None:
        """Have moto load the services of an EKS environment before the first of them is asked for.

        moto imports a service at its first request, and boto3 reads its description at its first client: half a
        second for some.
        """
        for service, question in _QUESTIONS.items():
            getattr(self.client(service), question)()

    def prepare(self) -> None:
        """Change and fill moto without opening a port, as tests need it.

        Raises:
            RuntimeError: Another account runs in this process.
            NetworkFileError: The networks that are there already do not fit together.
        """
        if Account._running not in (None, self):
            raise RuntimeError(
                "an AWS account runs in this process already, and moto holds one at a time: stop it "
                "before starting another"
            )
        Account._running = self
        os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
        os.environ[_MOTOS_ACCOUNT] = self.account_id
        cluster_time.patch(self._patches)
        descriptions.patch(self._patches)
        catalogue.load_region_only(self.region)
        catalogue.patch(self._patches)
        prices.patch(self._patches, self.prices)
        instances.patch(self._patches, self.events.state_change)
        lookups.patch(self._patches)
        nat_gateways.patch(self._patches)
        load_balancers.patch(self._patches)
        dispatch.patch(self._patches, self.roles.refuse, self._turn)
        self.roles.patch(self._patches)
        simulation.patch(self._patches, self.roles)
        self.quotas.patch(self._patches)
        self.fleet.patch(self._patches)
        self.events.patch(self._patches)
        self._identity.patch(self._patches)
        self.images.patch(self._patches)
        self._view.images = self.images.known
        MotoEks(self.region, self.eks, self.roles, self.images, self._last_lines.follow).patch(self._patches)
        self.roles.seed()
        if self._used_spot:
            self.roles.make_spot_role()
        if self._networks is not None:
            from moto.ec2.models import ec2_backends

            from karpstack.rehearsal.aws.ec2 import existing

            try:
                existing.make(self._networks, ec2_backends[self.account_id][self.region])
            except existing.NetworkFileError:
                self.stop()
                raise

    def stop(self) -> None:
        """Close the port and forget everything; safe to call twice."""
        if Account._running is not self:
            return
        from moto.core.base_backend import BackendDict

        self._server.stop()
        self.roles.uses.close()
        self._last_lines.stop()
        self._patches.undo()
        BackendDict.reset()
        os.environ.pop(_MOTOS_ACCOUNT, None)
        self._clients.clear()
        self._clouds.clear()
        self._tokens.clear()
        Account._running = None

    @property
    def endpoint(self) -> str:
        """`http://127.0.0.1:<port>`: every service of the account."""
        return self._server.endpoint

    @property
    def administrator_environment(self) -> dict[str, str]:
        """Environment with which AWS tools talk to this account as its administrator."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.roles.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.roles.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str) -> Any:
        """A boto3 client with the administrator's credentials; one for all threads."""
        import boto3
        from botocore.config import Config

        with self._lock:
            if self._session is None:
                # A session of its own: neither the environment's profile nor its region leads elsewhere.
                self._session = boto3.session.Session(
                    aws_access_key_id=self.roles.access_key_id,
                    aws_secret_access_key=self.roles.secret_access_key,
                    region_name=self.region,
                )
            if service not in self._clients:
                self._clients[service] = self._session.client(
                    service,
                    endpoint_url=self.endpoint,
                    config=Config(retries={"total_max_attempts": 1}, max_pool_connections=32),
                )
            return self._clients[service]

    def cloud(self, cluster_name: str) -> AwsCloud:
        """The account as a cluster sees it; always the same object for one name."""
        with self._lock:
            if cluster_name not in self._clouds:
                self._clouds[cluster_name] = AwsCloud(cluster_name, self._view, self.client)
            return self._clouds[cluster_name]

    def cluster_token(self, cluster_name: str) -> str:
        """The administrator's token for a cluster, which need not exist yet: STS signs one for any name."""
        with self._lock:
            return self._tokens.setdefault(cluster_name, f"k8s-aws-v1.{secrets.token_urlsafe(32)}")

    def _reviewer(self, cluster_name: str) -> TokenReviewer | None:
        cloud = self._clouds.get(cluster_name)
        return cloud.bound if cloud else None

    def _get_products(self, request: dict[str, Any]) -> dict[str, Any]:
        return prices.get_products(self.prices, request)
