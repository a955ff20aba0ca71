import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** One line of the allow list. Exactly one of `network`, `host` and `suffix` is set. */
export type Entry = {
  /** Tenant whose calls the entry concerns; without it, all tenants and the service itself. */
  readonly tenantId?: string;
  readonly network?: readonly [Address, number];
  readonly host?: string;
  /** `.example` of `*.example`: any name below, not the name itself. */
  readonly suffix?: string;
  readonly port?: number;
};

const OF_TENANT = /^(?<tenantId>[a-z0-9][a-z0-9-]{0,62})\s*=(?<place>.+)$/;
const ENTRY = /^(?<host>\[[0-9a-f:.]+\]|[^[\]:\s/]+)(?::(?<port>\d{1,5}))?$/;
const NAME = /^(?:\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$/;

/**
 * Parses a host (`backend.example`, `*.example`), a network (`10.0.0.0/8`) or an address, each host or address also with a port, and each
 * of these for one tenant (`acme=10.0.0.0/8`).
 * @throws Error that names an invalid entry.
 */
export function parseEntry(text: string): Entry {
  const { tenantId, place = text } = OF_TENANT.exec(text.trim())?.groups ?? {};
  const entry = parseTarget(place.trim().toLowerCase());
  if (entry === undefined) throw unreadable(text);
  return tenantId === undefined ? entry : { tenantId, ...entry };
}

function parseTarget(entry: string): Entry | undefined {
  if (ipaddr.isValidCIDR(entry)) return { network: ipaddr.parseCIDR(entry) };
  if (entry.includes('/')) return undefined;
  if (ipaddr.IPv6.isValid(entry)) return { network: single(entry) };

  const { host = '', port: portText } = ENTRY.exec(entry)?.groups ?? {};
  const port = portText === undefined ? {} : { port: Number(portText) };
  const literal = host.startsWith('[') ? host.slice(1, -1) : host;
  if (ipaddr.IPv6.isValid(literal) || ipaddr.IPv4.isValidFourPartDecimal(literal)) return { network: single(literal), ...port };
  // The URL parser would read a last label of digits as a number, so it would never match.
  if (!NAME.test(host) || /(^|\.)\d+$/.test(host)) return undefined;
  return host.startsWith('*.') ? { suffix: host.slice(1), ...port } : { host, ...port };
}

function unreadable(text: string): Error {
  return new Error(
    `OUTBOUND_ALLOW: "${text}" is neither a host (backend.example, *.example) nor a network (10.0.0.0/8) nor an ` +
      'address, each host or address also with a port (127.0.0.1:8080), and each also for one tenant (acme=backend.example)',
  );
}

function single(text: string): readonly [Address, number] {
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
