"""The simplest solution in Python: entries in SQLite, vectors as blobs, and a search that compares all of them with numpy.

usage: brute_force.py FILE COUNT DIM

Creates the database FILE with COUNT entries with random vectors and prints "ready". For each line of standard input (a task type, or "-"
for all) it then searches for the five nearest entries and prints the time in microseconds.
"""
import sqlite3
import sys
import time

import numpy

TASKS = 20


def build(path, count, dim):
    random = numpy.random.default_rng(1)
    con = sqlite3.connect(path)
    con.execute("create table memory (id integer primary key, task_type text not null, answer text not null, embedding blob not null)")
    con.execute("create index memory_task on memory (task_type)")
    answer = "Orders hold, margins give way a little, and inventories are lean. " * 4
    vectors = (random.standard_normal(dim, dtype=numpy.float32).tobytes() for _ in range(count))
    con.executemany("insert into memory values (?, ?, ?, ?)", ((i, f"task_{i % TASKS}", answer, v) for i, v in enumerate(vectors)))
    con.commit()
    return con, random


def search(con, query, task, k=5):
    where, values = ("where task_type = ?", (task,)) if task else ("", ())
    rows = con.execute(f"select id, embedding from memory {where}", values).fetchall()
    matrix = numpy.frombuffer(b"".join(blob for _, blob in rows), dtype=numpy.float32).reshape(len(rows), -1)
    cosines = matrix @ query / (numpy.linalg.norm(matrix, axis=1) * numpy.linalg.norm(query))
    best = numpy.argpartition(-cosines, k)[:k]
    return [rows[i][0] for i in best[numpy.argsort(-cosines[best])]]


def main():
    path, count, dim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    con, random = build(path, count, dim)
    print("ready", flush=True)
    for line in sys.stdin:
        task = line.strip()
        query = random.standard_normal(dim, dtype=numpy.float32)
        began = time.perf_counter()
        found = search(con, query, None if task == "-" else task)
        assert len(found) == 5
        print(round((time.perf_counter() - began) * 1e6), flush=True)


main()
