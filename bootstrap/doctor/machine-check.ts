import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import type { Settings } from '../../config/settings.ts';
import { shareOfWorker } from '../../config/worker-share.ts';
import { connectionWarning, openFilesLimit, RAISE_OPEN_FILES } from '../start/open-files.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const MIB = 1_048_576;
/** Memory of a process besides caches and bodies; see docs/architecture/memory.md. */
const BASE_MIB = 150;
/** Additional memory of a process that reads a large trust list; see docs/reference/issuer-trust.md. */
const TRUST_LIST_MIB = 128;
const MIN_DISK_MIB = 200;
const LOW_DISK_MIB = 2_048;
const BACKUP_HOURS = 26;
const OLD_BACKUP_HOURS = 8 * 24;

export type Machine = {
  readonly nodeVersion: string;
  /** The memory limit of this process, from the container or the machine. */
  readonly memoryMib: number;
  readonly heapMib: number;
  /** The number of files that this process may have open at once; undefined for no limit. */
  readonly filesLimit: number | undefined;
  /** The free space that this account can use in a folder. */
  readonly diskMib: (folder: string) => number;
  /** @returns true when this account may write there. */
  readonly isWritable: (folder: string) => boolean;
  /** @returns the file system of a folder that is lost with the container or the memory of the machine; undefined for a disk. */
  readonly volatileFileSystem: (folder: string) => string | undefined;
};

/** Linux identifies file systems by these magic numbers. */
const VOLATILE_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'overlay'],
]);

export function thisMachine(): Machine {
  const limit = process.constrainedMemory();
  return {
    nodeVersion: process.versions.node,
    memoryMib: Math.floor((limit > 0 ? Math.min(limit, totalmem()) : totalmem()) / MIB),
    heapMib: Math.floor(getHeapStatistics().heap_size_limit / MIB),
    filesLimit: openFilesLimit(),
    diskMib(folder) {
      const { bavail, bsize } = statfsSync(folder);
      return Math.floor((bavail * bsize) / MIB);
    },
    isWritable,
    volatileFileSystem: (folder) => VOLATILE_FILE_SYSTEMS.get(statfsSync(folder).type),
  };
}

export function checkMachine(settings: Settings, machine = thisMachine()): readonly Finding[] {
  return [checkNode(machine), checkMemory(settings, machine), checkOpenFiles(settings, machine), checkDisk(settings, machine)];
}

function checkNode({ nodeVersion }: Machine): Finding {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number);
  if (major < 24 || (major === 24 && minor < 7))
    return fault('node', `this is Node ${nodeVersion}`, 'install Node 24.7 or newer, see docs/guides/without-docker.md');
  return major === 24
    ? ok('node', `Node ${nodeVersion}`)
    : warning('node', `Node ${nodeVersion} is not the version that this release was tested with`, 'use Node 24');
}

function checkMemory({ CACHE_MEMORY, BODY_MEMORY, WORKERS }: Settings, machine: Machine): Finding {
  const neededMib = WORKERS * (CACHE_MEMORY + BASE_MIB + TRUST_LIST_MIB) + Math.max(BODY_MEMORY, WORKERS > 1 ? WORKERS * 20 : 0);
  const message = `up to ${neededMib} MiB are needed (WORKERS, CACHE_MEMORY, BODY_MEMORY), but there are ${machine.memoryMib}`;
  if (neededMib > machine.memoryMib) return fault('memory', message, 'lower CACHE_MEMORY or WORKERS, or add memory to the machine');
  if (CACHE_MEMORY > machine.heapMib / 2)
    return warning(
      'memory',
      `CACHE_MEMORY is ${CACHE_MEMORY} MiB of a heap of ${machine.heapMib}`,
      'lower CACHE_MEMORY, or raise the heap in the environment: NODE_OPTIONS=--max-old-space-size=<MiB>',
    );
  return neededMib > machine.memoryMib * 0.8
    ? warning('memory', message, 'lower CACHE_MEMORY or WORKERS, or add memory to the machine: a fifth is for the system')
    : ok('memory', message);
}

/** Every worker has the limit for itself, and its part of MAX_CONNECTIONS. */
function checkOpenFiles(settings: Settings, { filesLimit }: Machine): Finding {
  const processConnections = settings.WORKERS > 1 ? shareOfWorker(settings).MAX_CONNECTIONS : settings.MAX_CONNECTIONS;
  const message = connectionWarning(processConnections, filesLimit);
  return message === undefined
    ? ok('open files', `a process may have ${filesLimit ?? 'any number of'} files open`)
    : warning('open files', message, RAISE_OPEN_FILES);
}

/** SQLite grows in this folder. With PostgreSQL the service notes there how far the database was. */
function checkDisk(settings: Settings, machine: Machine): Finding {
  const { DATA_FOLDER, DATABASE_URL } = settings;
  const file = DATABASE_URL.startsWith('sqlite:') ? DATABASE_URL.slice('sqlite:'.length) : undefined;
  if (file === undefined) return checkWitness(existingFolder(resolve(DATA_FOLDER)), settings, machine);
  if (file === ':memory:') return ok('disk', 'the data are stored elsewhere');
  const folder = existingFolder(resolve(file, '..'));
  const freeMib = machine.diskMib(folder);
  const message = `${freeMib} MiB are free in ${folder}`;
  if (!machine.isWritable(folder))
    return fault('disk', `${folder} cannot be written`, 'give the account of the service write access to the folder');
  if (freeMib < MIN_DISK_MIB) return fault('disk', message, `free disk space: SQLite stops when the disk is full (${DATA_FOLDER})`);
  if (freeMib < LOW_DISK_MIB) return warning('disk', message, 'free space on the disk of DATA_FOLDER before it is full');
  return volatileFolder(folder, settings, machine) ?? ok('disk', message);
}

function checkWitness(folder: string, settings: Settings, machine: Machine): Finding {
  if (!machine.isWritable(folder))
    return warning(
      'disk',
      `${folder} cannot be written (DATA_FOLDER), so the next start has no record of the database position`,
      'give the account of the service write access to the folder, on a persistent disk; see docs/guides/backup-and-restore.md',
    );
  return volatileFolder(folder, settings, machine) ?? ok('disk', 'the data are stored elsewhere');
}

/** A volatile folder is accepted outside of production. */
function volatileFolder(folder: string, { NODE_ENV }: Settings, machine: Machine): Finding | undefined {
  const fileSystem = machine.volatileFileSystem(folder);
  if (fileSystem === undefined || NODE_ENV !== 'production') return undefined;
  return warning(
    'disk',
    `${folder} is on ${fileSystem}, so its files are lost with the container or the machine, and the next start may be rejected`,
    'mount a persistent volume there; see docs/guides/backup-and-restore.md',
  );
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function existingFolder(folder: string): string {
  return existsSync(folder) || folder === '/' ? folder : existingFolder(resolve(folder, '..'));
}

/** @param paths files, or folders whose newest file counts. */
export function checkBackups(paths: readonly string[], now = new Date()): readonly Finding[] {
  return paths.map((path) => {
    const advice = 'check that the backup job runs, and test a restore: docs/guides/backup-and-restore.md';
    const newest = newestFile(path);
    if (newest === undefined) return fault('backup', `there is none at ${path}`, advice);
    const hours = Math.floor((now.getTime() - newest.at.getTime()) / 3_600_000);
    const message = `${newest.file} is ${hours} hours old and has ${newest.bytes} bytes`;
    if (newest.bytes === 0 || hours > OLD_BACKUP_HOURS) return fault('backup', message, advice);
    return hours > BACKUP_HOURS ? warning('backup', message, advice) : ok('backup', message);
  });
}

function newestFile(path: string): { file: string; at: Date; bytes: number } | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isDirectory()) return { file: path, at: stats.mtime, bytes: stats.size };
  const files = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .flatMap(({ name }) => newestFile(join(path, name)) ?? [])
    .sort((file, otherFile) => otherFile.at.getTime() - file.at.getTime())[0];
}
