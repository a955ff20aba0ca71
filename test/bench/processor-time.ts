import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks per second in `/proc/<pid>/stat`. */
const TICKS = readTicks();

function readTicks(): number {
  try {
    return Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' })) || 100;
  } catch {
    return 100;
  }
}

/** CPU milliseconds that all processes of this machine have used. */
export function machineMs(): number {
  const [total = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  // proc_stat(5): user, nice, system, idle, iowait, irq, softirq
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = total.trim().split(/\s+/).slice(1).map(Number);
  return ((user + nice + system + irq + softirq) / TICKS) * 1000;
}

/** User and system CPU of a process and of those of its children that have ended, in milliseconds. */
export function cpuMs(pid: number): number {
  const fields = statFields(pid);
  // proc_pid_stat(5): utime, stime, cutime, cstime are fields 14 to 17; the first here is field 3.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return (ticks / TICKS) * 1000;
}

/** The same of a process with one thread, finer than by ticks where the kernel counts so. */
function threadMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    return cpuMs(pid);
  }
}

function statFields(pid: number): readonly string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name stands in parentheses and may contain anything.
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

export function memoryMegabytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  return Number(kilobytes ?? Number.NaN) / 1024;
}

/** Starts a new peak (`VmHWM`). @returns false when the kernel does not allow it; the old peak then stays. */
export function resetPeak(pid: number): boolean {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    return true;
  } catch {
    return false;
  }
}

/**
 * CPU time of a PostgreSQL server on this machine for one database: its backends and the shared processes, without other
 * databases.
 */
export class PostgresTime {
  readonly #postmaster: number;
  readonly #database: string;

  constructor(postmaster: number, database: string) {
    this.#postmaster = postmaster;
    this.#database = database;
  }

  /** @param backend any backend of the server. @returns undefined when the server does not run here. */
  static forBackend(backend: number, database: string): PostgresTime | undefined {
    try {
      if (!title(backend).startsWith('postgres:')) return undefined;
      return new PostgresTime(Number(statFields(backend)[1]), database);
    } catch {
      return undefined;
    }
  }

  /** CPU milliseconds by process, to be compared with a later reading. */
  readTimes(): ReadonlyMap<number, number> {
    const processTimes = new Map<number, number>();
    for (const name of readdirSync('/proc')) {
      const pid = Number(name);
      if (!Number.isInteger(pid)) continue;
      try {
        if (Number(statFields(pid)[1]) === this.#postmaster && this.#concerns(title(pid))) {
          processTimes.set(pid, threadMs(pid));
        }
      } catch {
        // It ended while we looked.
      }
    }
    return processTimes;
  }

  /** `postgres: [<cluster>:] <user> <database> <peer> <activity>`, or the role of a process that works for all. */
  #concerns(text: string): boolean {
    const isBackend = /(\[local\]|[0-9a-f.:]+\(\d+\)|autovacuum worker )/.test(text);
    return !isBackend || `${text} `.includes(` ${this.#database} `);
  }
}

export function spentMs(timesBefore: ReadonlyMap<number, number>, timesAfter: ReadonlyMap<number, number>): number {
  let sum = 0;
  for (const [pid, time] of timesAfter) sum += time - (timesBefore.get(pid) ?? 0);
  return sum;
}

function title(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
}
