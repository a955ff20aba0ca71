import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { win32 } from 'node:path';

/** Larger files are ignored. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_SEARCH = 6;
const MAX_DOTS = 15;

export type Files = { readonly hosts: string; readonly resolv: string };

const isWindows = process.platform === 'win32';
const systemFolder = process.env['SystemRoot'] ?? 'C:\\Windows';

export const SYSTEM_FILES: Files = {
  hosts: isWindows ? win32.join(systemFolder, 'System32', 'drivers', 'etc', 'hosts') : '/etc/hosts',
  resolv: '/etc/resolv.conf',
};

/** Name settings of the system (hosts(5), resolv.conf(5)). */
export type Names = {
  /** Addresses by name in lower case. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  readonly search: readonly string[];
  /** A name with at least this many dots is first queried unchanged. */
  readonly dots: number;
};

/** A file that is missing or unreadable counts as empty. */
export async function readNames({ hosts, resolv }: Files): Promise<Names> {
  const [hostsText, resolvText] = await Promise.all([read(hosts), read(resolv)]);
  return { hosts: readHosts(hostsText), ...readResolv(resolvText) };
}

async function read(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.length > MAX_FILE_BYTES ? '' : text;
}

function readHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const addresses = new Map<string, string[]>();
  for (const [address = '', ...names] of linesOf(text, /#.*$/)) {
    if (isIP(address) === 0) continue;
    for (const name of names.map((hostName) => hostName.toLowerCase())) {
      const previousAddresses = addresses.get(name) ?? [];
      if (!previousAddresses.includes(address)) addresses.set(name, [...previousAddresses, address]);
    }
  }
  return addresses;
}

function readResolv(text: string): Pick<Names, 'search' | 'dots'> {
  let search: readonly string[] = [];
  let dots = 1;
  for (const [keyword, ...values] of linesOf(text, /[#;].*$/)) {
    // The last occurrence counts.
    if (keyword === 'search') search = values.slice(0, MAX_SEARCH);
    else if (keyword === 'domain') search = values.slice(0, 1);
    else if (keyword === 'options') {
      const ndots = values.map((value) => /^ndots:(\d{1,2})$/.exec(value)?.[1]).findLast(Boolean);
      if (ndots !== undefined) dots = Math.min(Number(ndots), MAX_DOTS);
    }
  }
  return { search: search.map((domain) => domain.replace(/\.$/, '')).filter(Boolean), dots };
}

function linesOf(text: string, comment: RegExp): string[][] {
  return text.split('\n').map((line) => line.replace(comment, '').trim().split(/\s+/));
}
