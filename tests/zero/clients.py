"""Clients that send one request after the other, know the number of answers, and store the answers.

Each has ask(number) and close(). `asked` counts the answered requests, hello and good-bye among them. `answers` has
all bytes that must be the same each time.

SPDX-License-Identifier: BSD-2-Clause
"""
import ftplib
import io
import socket
import ssl
import struct

from load import SILENT_S, Failed

BLOCK = 4096
BEHIND = {}  # a proxy's port -> that of the server behind it
BLOCKS = 1024


def block(number):
    return (b"%08d" % number) * (BLOCK // 8)


class Client:
    def __init__(self, port):
        self.asked = 0
        self.answers = []
        self.socket = socket.create_connection(("127.0.0.1", port), SILENT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self, size):
        got = b""
        while len(got) < size:
            part = self.socket.recv(size - len(got))
            if not part:
                raise Failed(f"the server hung up where {size} bytes were expected, after {got[:200]!r}")
            got += part
        return got

    def keep(self, answer):
        self.asked += 1
        self.answers.append(answer)

    def close(self):
        self.socket.close()


class Mqtt(Client):
    """Publishes with acknowledgements, and has subscribed to its own messages."""

    def __init__(self, port):
        super().__init__(port)
        self.send(0x10, b"\0\4MQTT\4\2\0\0" + b"\0\6client")
        self.keep(self.receive(4))  # CONNACK
        self.send(0x82, b"\0\1" + b"\0\1t\0")
        self.keep(self.receive(5))  # SUBACK

    def send(self, kind, packet):
        self.socket.sendall(bytes([kind, len(packet)]) + packet)

    def ask(self, number):
        text = b"\0\1t" + b"%032d" % number
        self.send(0x32, text[:3] + struct.pack(">H", number % 0xFFFF + 1) + text[3:])
        got = self.receive(4 + 2 + len(text))  # PUBACK, and the message, in any order
        self.keep(got if got[0] == 0x40 else got[-4:] + got[:-4])

    def close(self):
        self.socket.sendall(b"\xe0\0")
        super().close()


class Nbd(Client):
    """Writes a block, and reads it, in turns."""

    def __init__(self, port):
        super().__init__(port)
        self.receive(18)
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
        self.keep(self.receive(10))

    def ask(self, number):
        is_read, offset = number % 2, number // 2 % BLOCKS * BLOCK
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 1 - is_read, number, offset, BLOCK) +
                            (b"" if is_read else block(number)))
        self.keep(self.receive(16 + BLOCK * is_read))

    def close(self):
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 2, 0, 0, 0))
        super().close()


class Postgres(Client):
    """Inserts a row, and selects it, in turns."""

    def __init__(self, port):
        super().__init__(port)
        words = b"user\0postgres\0database\0postgres\0\0"
        self.socket.sendall(struct.pack(">II", len(words) + 8, 0x30000) + words)
        self.keep(self.until_ready())

    def until_ready(self):
        got = b""
        while True:
            kind, length = struct.unpack(">cI", self.receive(5))
            text = self.receive(length - 4)
            if kind == b"E":
                raise Failed(f"PostgreSQL says {text!r}")
            if kind != b"K":  # its process, and a secret
                got += kind + text
            if kind == b"Z":
                return got

    def ask(self, number):
        text = b"SELECT n, repeat('x', 100) FROM t WHERE n = %d" if number % 2 else b"INSERT INTO t VALUES (%d)"
        text = text % (number // 2) + b"\0"
        self.socket.sendall(struct.pack(">cI", b"Q", len(text) + 4) + text)
        self.keep(self.until_ready())

    def close(self):
        self.socket.sendall(struct.pack(">cI", b"X", 4))
        super().close()


class CountedFtp(ftplib.FTP):
    sent = 0

    def putcmd(self, line):
        self.sent += 1
        super().putcmd(line)


class Ftp:
    """Stores a file, and gets it, in turns: four commands each, TYPE, EPSV or PASV, STOR or RETR, SIZE."""

    def __init__(self, port):
        self.answers = []
        self.ftp = CountedFtp(timeout=SILENT_S)
        self.answers.append(self.ftp.connect("127.0.0.1", port).encode())
        self.answers.append(self.ftp.login().encode())

    @property
    def asked(self):
        return self.ftp.sent

    def ask(self, number):
        name = f"upload/file{number // 2 % 100}"
        if number % 2:
            self.answers.append(self.ftp.retrbinary(f"RETR {name}", self.answers.append).encode())
        else:
            self.answers.append(self.ftp.storbinary(f"STOR {name}", io.BytesIO(block(number))).encode())
        self.answers.append(b"%d" % self.ftp.size(name))

    def close(self):
        self.answers.append(self.ftp.quit().encode())


class Iscsi(Client):
    """Writes a block, and reads it, in turns, as RFC 7143 says."""

    LOGIN = (b"InitiatorName=iqn.2026-11.test:client\0TargetName=iqn.2026-11.test:disk\0SessionType=Normal\0"
             b"HeaderDigest=None\0DataDigest=None\0InitialR2T=No\0ImmediateData=Yes\0"
             b"MaxRecvDataSegmentLength=65536\0FirstBurstLength=65536\0")

    def __init__(self, port):
        super().__init__(port)
        self.task = self.command = 0
        self.expected = 0  # status number
        self.send(struct.pack(">BBBBI6sHIHHII16x", 0x43, 0x87, 0, 0, len(self.LOGIN), b"\x80\0\0\0\0\1", 0, 0, 0, 0,
                              1, 0), self.LOGIN)
        header, _ = self.pdu()
        if header[0] != 0x23 or header[36:38] != b"\0\0":
            raise Failed(f"tgtd refuses the login: {header!r}")
        self.command = 1
        self.keep(header[:4])
        self.scsi(bytes(6))  # TEST UNIT READY: earlier events, such as a reset, are reported once

    def send(self, header, data=b""):
        self.socket.sendall(header + data + bytes(-len(data) % 4))

    def pdu(self):
        header = self.receive(48)
        length = int.from_bytes(header[5:8], "big")
        data = self.receive(length + -length % 4)[:length]
        if header[0] != 0x25 or header[1] & 1:
            self.expected = int.from_bytes(header[24:28], "big") + 1
        return header, data

    def scsi(self, cdb, length=0, data=None):
        self.task += 1
        flags = 0x81 | (0x20 if data else 0x40 if length else 0)
        self.send(struct.pack(">BBxxI8sIIII16s", 0x01, flags, len(data or b""), b"\0\1" + bytes(6), self.task, length,
                              self.command, self.expected, cdb.ljust(16, b"\0")), data or b"")
        self.command += 1
        got = b""
        while True:
            header, text = self.pdu()
            got += text
            if header[0] == 0x21 or header[0] == 0x25 and header[1] & 1:  # with the status
                self.keep(got + header[3:4])
                return header[3]

    def ask(self, number):
        is_read, lba = number % 2, number // 2 % BLOCKS * (BLOCK // 512)
        status = self.scsi(struct.pack(">BBIBHB", 0x28 if is_read else 0x2A, 0, lba, 0, BLOCK // 512, 0), BLOCK,
                           None if is_read else block(number))
        if status:
            raise Failed(f"tgtd: status {status} of command {number}")

    def close(self):
        self.send(struct.pack(">BBxxIQIHxxII16x", 0x46, 0x80, 0, 0, self.task + 1, 0, self.command, self.expected))
        self.pdu()
        self.keep(b"logout")
        super().close()


class Http(Client):
    """Gets one file after the other, with the same headers each time."""
    has_same_headers = True

    def __init__(self, port):
        super().__init__(port)
        self.port = port

    def ask(self, number):
        self.get(b"/%d" % (number % 200), self.port)

    def get(self, target, port):
        self.socket.sendall(b"GET %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (target, port))
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.receive(1)
        length = next(int(line.split(b":")[1]) for line in got.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        self.keep((got if self.has_same_headers else got.partition(b"\r\n")[0]) + self.receive(length))


class Web(Http):
    """Gets one file after the other; the headers may differ."""
    has_same_headers = False


class Smb(Client):
    """Writes a block, and reads it, in turns, as MS-SMB2 has it: dialect 2.1, as a guest."""

    NEGOTIATE, SESSION_SETUP, LOGOFF, TREE_CONNECT, CREATE, READ, WRITE = 0, 1, 2, 3, 5, 8, 9
    PENDING, MORE_PROCESSING = 0x103, 0xC0000016
    NTLM_FLAGS = 0x20080205  # no key exchange: no signature

    def __init__(self, port):
        super().__init__(port)
        self.message = self.session = self.tree = 0
        self.command(self.NEGOTIATE, struct.pack("<HHHHI16sQH", 36, 1, 1, 0, 0, b"client".ljust(16), 0, 0x0210))
        hello = b"NTLMSSP\0" + struct.pack("<II", 1, self.NTLM_FLAGS) + bytes(16)
        self.set_up(hello, self.MORE_PROCESSING)
        nobody, after = struct.pack("<HHI", 0, 0, 64), struct.pack("<HHI", 1, 1, 64)  # an anonymous user
        self.set_up(b"NTLMSSP\0" + struct.pack("<I", 3) + after + 5 * nobody +
                    struct.pack("<I", self.NTLM_FLAGS | 0x800) + b"\0")
        path = "\\\\127.0.0.1\\share".encode("utf-16-le")
        self.tree = self.command(self.TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(path)) + path)[1]
        name = "file".encode("utf-16-le")
        opened = self.command(self.CREATE, struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, 0x12019F, 0x80, 7, 3, 0,
                                                       120, len(name), 0, 0) + name)[0]
        self.file = opened[64 + 64:64 + 80]

    def set_up(self, token, expected=0):
        self.command(self.SESSION_SETUP, struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, len(token), 0) + token, expected)

    def command(self, number, body, expected=0):
        header = struct.pack("<4sHHIHHIIQIIQ16s", b"\xfeSMB", 64, 0, 0, number, 1, 0, 0, self.message, 0, self.tree,
                             self.session, bytes(16))
        self.message += 1
        self.socket.sendall(struct.pack(">I", len(header + body)) + header + body)
        status = self.PENDING  # a slow request is answered twice
        while status == self.PENDING:
            got = self.receive(int.from_bytes(self.receive(4), "big"))
            status, tree, self.session = (*struct.unpack_from("<I", got, 8), *struct.unpack_from("<IQ", got, 36))
        if status != expected:
            raise Failed(f"smbd: status {status:#x} of command {number}")
        self.keep(got[12:14] + got[8:12] + (got[80:] if number == self.READ else got[64:80] if number == self.WRITE
                                            else b""))
        return got, tree

    def ask(self, number):
        offset = number // 2 % BLOCKS * BLOCK
        if number % 2:
            self.command(self.READ, struct.pack("<HBBIQ16sIIIHHB", 49, 0, 0, BLOCK, offset, self.file, 0, 0, 0, 0, 0, 0))
        else:
            self.command(self.WRITE, struct.pack("<HHIQ16sIIHHI", 49, 112, BLOCK, offset, self.file, 0, 0, 0, 0, 0) +
                         block(number))

    def close(self):
        self.command(self.LOGOFF, struct.pack("<HH", 4, 0))
        super().close()


class Redis(Client):
    """Sets a key, and gets it, in turns."""

    def command(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        got = self.line()
        if got[:1] == b"$":
            got += self.receive(int(got[1:]) + 2)
        elif got[:1] == b"*":
            for _ in range(int(got[1:])):
                length = self.line()
                got += length + self.receive(int(length[1:]) + 2)
        self.keep(got)

    def line(self):
        got = b""
        while not got.endswith(b"\r\n"):
            got += self.receive(1)
        return got

    def ask(self, number):
        key = b"key%d" % (number // 2 % 100)
        self.command(*((b"GET", key) if number % 2 else (b"SET", key, b"%d" % number)))


class Sentinel(Redis):
    """Requests the address of the server that it watches."""

    def ask(self, number):
        self.command(*((b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"main") if number % 2 else (b"PING",)))


class Lines(Redis):
    """A client of protocols in which the server speaks first, and answers with lines."""

    def __init__(self, port):
        super().__init__(port)
        self.line()

    def tell(self, text, kept):
        """Sends the text. Reads up to the answer's last line, whose first `kept` bytes are always the same."""
        self.socket.sendall(text)
        got = b""
        while True:
            line = self.line()
            if self.is_last(line):
                self.keep(got + line[:kept])
                return
            got += line


class Smtp(Lines):
    """Four requests for each mail: three commands, and the text."""

    def __init__(self, port):
        super().__init__(port)
        self.tell(b"EHLO client\r\n", 4)

    @staticmethod
    def is_last(line):
        return line[3:4] == b" "

    def ask(self, number):
        self.tell(b"MAIL FROM:<one@localhost>\r\n", 4)
        self.tell(b"RCPT TO:<two@localhost>\r\n", 4)
        self.tell(b"DATA\r\n", 4)
        self.tell(b"Subject: %d\r\n\r\n" % number + block(number) + b"\r\n.\r\n", 4)

    def close(self):
        self.tell(b"QUIT\r\n", 4)
        super().close()


class Imap(Lines):
    """Stores a mail, by two requests, and fetches it by one, in turns."""

    def __init__(self, port):
        super().__init__(port)
        self.tell(b"a LOGIN one two\r\n", 4)
        self.tell(b"a SELECT INBOX\r\n", 4)
        self.answers.pop()

    @staticmethod
    def is_last(line):
        return line.startswith((b"a ", b"+ "))

    def ask(self, number):
        if number % 2:
            self.tell(b"a FETCH * BODY.PEEK[]\r\n", 4)
            return
        mail = b"Subject: %d\r\n\r\n" % number + block(number) + b"\r\n"
        self.tell(b"a APPEND INBOX {%d}\r\n" % len(mail), 4)
        self.tell(mail + b"\r\n", 4)
        self.answers.pop()  # the number of mails

    def close(self):
        self.tell(b"a LOGOUT\r\n", 4)
        super().close()


class Proxied(Web):
    """Gets one file after the other through a proxy."""

    def ask(self, number):
        behind = BEHIND[self.port]
        self.get(b"http://127.0.0.1:%d/%d" % (behind, number % 200), behind)


class ProxiedOnce(Proxied):
    """The same where the proxy closes the connection after each answer."""

    def __init__(self, port):
        self.port, self.asked, self.answers = port, 0, []

    def ask(self, number):
        asked, answers = self.asked, self.answers
        super().__init__(self.port)
        self.asked, self.answers = asked, answers
        super().ask(number)
        self.socket.close()

    def close(self):
        pass


class Tls(Web):
    """Gets one file after the other over TLS. Before, the server answers twice: with its hello, and with tickets."""

    def __init__(self, port):
        super().__init__(port)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket)
        self.keep(b"")
        self.keep(b"")


class Dns(Client):
    """Over TCP: dnsmasq answers 100 requests per connection."""

    def __init__(self, port):
        super().__init__(port)
        self.port = port

    def ask(self, number):
        if self.asked and self.asked % 100 == 0:
            self.socket.close()
            self.socket = socket.create_connection(("127.0.0.1", self.port), SILENT_S)
        query = (struct.pack(">HHHHHH", number % 65536, 0x0100, 1, 0, 0, 0) +
                 b"\x0bhost%07d\4test\0" % number + struct.pack(">HH", 1, 1))
        self.socket.sendall(struct.pack(">H", len(query)) + query)
        self.keep(self.receive(int.from_bytes(self.receive(2), "big")))


class MySql(Client):
    """Inserts a row, and selects it, in turns."""

    def __init__(self, port):
        super().__init__(port)
        self.packet()
        self.send(1, struct.pack("<IIB23x", 0x88201, 1 << 24, 33) + b"root\0\0mysql_native_password\0")
        self.keep(self.packet())

    def send(self, number, text):
        self.socket.sendall(struct.pack("<I", len(text) | number << 24) + text)

    def packet(self):
        got = self.receive(int.from_bytes(self.receive(4)[:3], "little"))
        if got[:1] == b"\xff":
            raise Failed(f"MariaDB says {got!r}")
        return got

    def ask(self, number):
        text = b"SELECT n, repeat('x', 100) FROM d.t WHERE n = %d" if number % 2 else b"INSERT INTO d.t VALUES (%d)"
        self.send(0, b"\3" + text % (number // 2))
        got = self.packet()
        for _ in range(2 if number % 2 else 0):  # columns, and rows
            part = b""
            while part[:1] != b"\xfe":
                part = self.packet()
                got += part
        self.keep(got)

    def close(self):
        self.send(0, b"\1")
        super().close()


class Rsync(Client):
    """Lists the modules, by a connection each time."""

    def __init__(self, port):
        self.port, self.asked, self.answers = port, 0, []

    def ask(self, _):
        with socket.create_connection(("127.0.0.1", self.port), SILENT_S) as self.socket:
            while self.receive(1) != b"\n":
                pass
            self.socket.sendall(b"@RSYNCD: 31.0 md5\n#list\n")
            got = b""
            while not got.endswith(b"@RSYNCD: EXIT\n"):
                got += self.receive(1)
        self.keep(got)

    def close(self):
        pass


class Amqp(Client):
    """Puts a message into a queue, waits for the confirmation, and gets it, in turns: AMQP 0-9-1."""

    def __init__(self, port):
        super().__init__(port)
        self.socket.sendall(b"AMQP\0\0\x09\1")
        self.heard(1)
        self.answers.pop()  # versions
        self.call(0, 10, 11, bytes(4) + b"\5PLAIN" + struct.pack(">I", 12) + b"\0guest\0guest" + b"\5en_US")
        self.socket.sendall(self.method(0, 10, 31, struct.pack(">HIH", 10, 1 << 17, 0)) +
                            self.method(0, 10, 40, b"\1/\0\0"))
        self.heard(1)
        self.call(1, 20, 10, b"\0")
        self.call(1, 50, 10, bytes(2) + b"\1q\0" + bytes(4))
        self.answers.pop()  # the number of messages
        self.call(1, 85, 10, b"\0")

    @staticmethod
    def frame(kind, channel, text):
        return struct.pack(">BHI", kind, channel, len(text)) + text + b"\xce"

    def method(self, channel, group, number, text):
        return self.frame(1, channel, struct.pack(">HH", group, number) + text)

    def heard(self, frames):
        got = b""
        for _ in range(frames):
            got += self.receive(int.from_bytes(self.receive(7)[3:], "big") + 1)
        self.keep(got)

    def call(self, channel, group, number, text, frames=1):
        self.socket.sendall(self.method(channel, group, number, text))
        self.heard(frames)

    def ask(self, number):
        if number % 2:
            self.call(1, 60, 70, bytes(2) + b"\1q\1", frames=3)
            return
        self.socket.sendall(self.method(1, 60, 40, bytes(3) + b"\1q\0") +
                            self.frame(2, 1, struct.pack(">HHQH", 60, 0, BLOCK, 0)) + self.frame(3, 1, block(number)))
        self.heard(1)

    def close(self):
        self.call(0, 10, 50, struct.pack(">HBHH", 200, 0, 0, 0))
        super().close()
