# A broker of Kafka for tests, and its download; kafka.py sends requests to it.
# SPDX-License-Identifier: BSD-2-Clause
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
import kafka  # noqa: E402
from common import ENVIRONMENT, free_port, wait_until  # noqa: E402,F401
from part import Part  # noqa: E402

START_S = 100  # for the start of a broker on a busy machine
PASSWORD = "open-sesame"  # of user blkin
JAVA = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]


def is_listened(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def fetch_kafka():
    """Returns the folder of Kafka's jars. Skips the test without Kafka, or without librdkafka."""
    fetched = subprocess.run([os.environ["SRC"] + "/scripts/fetch-kafka"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, check=False)
    reason = "no Kafka: " + fetched.stderr.strip().splitlines()[-1] if fetched.returncode else ""
    with open(os.environ["BUILD"] + "/bin/blkin", "rb") as program:
        if not reason and b"librdkafka.so" not in program.read():
            reason = "this build is without librdkafka"
    if reason:
        print(reason)
        sys.exit(77)
    return fetched.stdout.strip()


class Broker(Part):
    """A broker that is its own controller; at sasl_port users have a password."""

    def __init__(self, jars, folder, tls="", **settings):
        """tls: a file with key and certificate as PEM, for tls_port. settings: a_b=C is a.b=C."""
        self.folder = folder
        self.port, self.sasl_port, self.tls_port, controller = free_port(), free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.properties = os.path.join(folder, "server.properties")
        super().__init__(os.path.join(folder, "kafka.log"), [*JAVA, f"-Djava.io.tmpdir={folder}", "-cp", f"{jars}/*", "kafka.Kafka",
                                                             self.properties])
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        listeners = f"PLAINTEXT://{self.address},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        if tls:
            listeners += f",SSL://127.0.0.1:{self.tls_port}"
            settings.update(ssl_keystore_type="PEM", ssl_keystore_location=tls)
        with open(self.properties, "w", encoding="utf-8") as file:
            file.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} user_blkin="{PASSWORD}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
# the controller refuses a killed broker until its session has timed out: by default 9 s
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
""")
            for name, value in settings.items():
                file.write(f"{name.replace('_', '.')}={value}\n")
        # as StorageTool's "format" does, which takes seconds
        os.mkdir(f"{folder}/data")
        with open(f"{folder}/data/meta.properties", "w", encoding="utf-8") as file:
            file.write("version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\n")

    def set_password(self, password, before=PASSWORD):
        """Sets the password that user blkin has from the broker's next start on."""
        with open(self.properties, "r+", encoding="utf-8") as file:
            text = file.read().replace(f'"{before}"', f'"{password}"')
            file.seek(0)
            file.write(text)
            file.truncate()

    def wait_ready(self):
        def listens():
            ended = self.process.poll()
            if ended is not None:
                raise AssertionError(f"Kafka has ended with status {ended}")
            return is_listened(self.port)
        wait_until(listens, "Kafka listens", START_S)

    # the topics and their messages
    create, grow, delete, trim = kafka.create, kafka.grow, kafka.delete, kafka.trim
    read, produce = kafka.read, kafka.produce


def start_broker(test, jars, folder, **settings):
    """Starts a broker that runs until the end of the test, or of all tests of a class."""
    broker = Broker(jars, folder, **settings)
    broker.start()
    (test.addClassCleanup if isinstance(test, type) else test.addCleanup)(broker.kill)
    broker.wait_ready()
    return broker


def start_part(test, name, *command, **environment):
    """Starts any program in the same way; its log is in the test's folder."""
    part = Part(f"{test.folder}/{name}.log", command, **environment).start()
    test.addCleanup(part.kill)
    return part
