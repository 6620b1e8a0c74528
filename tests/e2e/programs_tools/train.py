import argparse
import os

import work

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("-c", "--config")
args = parser.parse_args()
assert os.environ["RANK"] == os.environ["LOCAL_RANK"]
for _ in range(args.epochs):
    work.crunch(os.environ["RANK"])
print(
    "rank %s of %s: epochs %d, %s"
    % (os.environ["RANK"], os.environ["WORLD_SIZE"], args.epochs, args.config)
)
