import { readFileSync } from 'node:fs';

/** Descriptors for outgoing calls, the database, files and worker threads. */
const RESERVED_FILES = 2_500;

/**
 * @param limits the text of `/proc/<pid>/limits`.
 * @returns the number of files that the process may have open at once; undefined for no limit.
 */
export function parseOpenFilesLimit(limits: string): number | undefined {
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** @returns the number of files that this process may have open at once; undefined for no limit, or when the system does not tell it. */
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
 * clients have opened all their connections.
 * @param maxConnections as it is configured. @param filesLimit undefined for no limit.
 * @returns the number of client connections that one process accepts.
 */
export function effectiveMaxConnections(maxConnections: number, filesLimit: number | undefined): number {
  if (filesLimit === undefined) return maxConnections;
  const reserved = Math.min(RESERVED_FILES, Math.ceil(filesLimit / 2));
  return Math.min(maxConnections, Math.max(1, filesLimit - reserved));
}

/** @returns the message for an operator when the process cannot accept as many connections as configured; otherwise undefined. */
export function connectionWarning(maxConnections: number, filesLimit: number | undefined): string | undefined {
  const effective = effectiveMaxConnections(maxConnections, filesLimit);
  return effective === maxConnections
    ? undefined
    : `MAX_CONNECTIONS is ${maxConnections} for this process, which may open ${filesLimit} files: it accepts ${effective} connections`;
}

/** The advice for an operator whose limit is too low. */
export const RAISE_OPEN_FILES = `raise the limit of open files (LimitNOFILE of systemd, --ulimit nofile of a container, ulimit -n) to MAX_CONNECTIONS and ${RESERVED_FILES} more, or lower MAX_CONNECTIONS`;
