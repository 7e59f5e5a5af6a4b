# Tells latlab adapt which devices this program needs, until it ends:
#
#	python3 examples/groups.py AUDIO,NETWORK
import socket
import sys


def ask(line):
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect("/run/latlab/adapt.sock")
        daemon.sendall(line.encode() + b"\n")
        return daemon.makefile().readline().rstrip("\n")


answer = ask("groups " + sys.argv[1])
print(answer)
if not answer.startswith("ok"):
    sys.exit(1)
# The program does its work here.
print(ask("release"))
