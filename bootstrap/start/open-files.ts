import { readFileSync } from 'node:fs';

/** Descriptors for outgoing calls, the database, files and worker threads. */
const RESERVED_FILES = 2_500;

/**
 * @param limits text of `/proc/<pid>/limits`.
 * @returns how many files the process may have open at once; undefined for no limit.
 */
export function parseOpenFilesLimit(limits: string): number | undefined {
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** @returns how many files this process may have open at once; undefined for no limit, or where the system does not tell it. */
export function openFilesLimit(): number | undefined {
  try {
    return parseOpenFilesLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    // Only Linux has this file.
    return undefined;
  }
}

/**
 * Each connection is an open file. A part of the limit is reserved, so that files, the database and outgoing calls still work when
 * clients have opened all connections that they may have.
 * @param maxConnections as it is configured. @param filesLimit undefined for no limit.
 * @returns how many connections of clients one process accepts.
 */
export function effectiveMaxConnections(maxConnections: number, filesLimit: number | undefined): number {
  if (filesLimit === undefined) return maxConnections;
  const reserved = Math.min(RESERVED_FILES, Math.ceil(filesLimit / 2));
  return Math.min(maxConnections, Math.max(1, filesLimit - reserved));
}

/** @returns what an operator is told when the process cannot accept as many connections as configured; undefined when it can. */
export function connectionWarning(maxConnections: number, filesLimit: number | undefined): string | undefined {
  const effective = effectiveMaxConnections(maxConnections, filesLimit);
  return effective === maxConnections
    ? undefined
    : `MAX_CONNECTIONS is ${maxConnections} for this process, which may open ${filesLimit} files: it accepts ${effective} connections`;
}

/** How an operator raises the limit. */
export const RAISE_OPEN_FILES = `raise the limit of open files (LimitNOFILE of systemd, --ulimit nofile of a container, ulimit -n) to MAX_CONNECTIONS and ${RESERVED_FILES} more, or lower MAX_CONNECTIONS`;
