import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** One line of the allow list. Exactly one of `network`, `host` and `suffix` is set. */
type Entry = {
  readonly network?: readonly [Address, number];
  readonly host?: string;
  /** `.example` of `*.example`: any name below, not the name itself. */
  readonly suffix?: string;
  readonly port?: number;
};

/** RFC 6052 section 2.1: the last 32 bits are the IPv4 address that a translator will call. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** RFC 4291 section 2.4 as assigned by IANA: whatever lies outside is not a global unicast address. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
const ENTRY = /^(?<host>\[[0-9a-f:.]+\]|[^[\]:\s/]+)(?::(?<port>\d{1,5}))?$/;
const NAME = /^(?:\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$/;

/**
 * Decides which addresses may be called. Everything global is allowed; what lies inside needs an entry: a host
 * (`backend.example`, `*.example`), a network (`10.0.0.0/8`), an address, each host or address also with a port.
 */
export class AddressGuard {
  readonly #entries: readonly Entry[];

  /** @throws Error that names an entry which cannot be read. */
  constructor(allow: readonly string[]) {
    this.#entries = allow.map(readEntry);
  }

  /** @param host lower case, without the brackets of an IPv6 literal. */
  isListedHost(host: string, port: number): boolean {
    const name = host.endsWith('.') ? host.slice(0, -1) : host;
    return this.#entries.some(
      (entry) =>
        fitsPort(entry, port) &&
        (entry.host === name || (entry.suffix !== undefined && name.endsWith(entry.suffix))),
    );
  }

  isListedAddress(text: string, port: number): boolean {
    const address = readAddress(text);
    return (
      address !== undefined &&
      this.#entries.some((entry) => fitsPort(entry, port) && contains(entry, address))
    );
  }

  /** Whether a call of this address is refused whatever a name server says. */
  refuses(text: string): boolean {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return true;
    const isHttps = url.protocol === 'https:';
    const { host, port } = targetOf(url);
    if (this.isListedHost(host, port)) return false;
    if (isIP(host) !== 0) return !this.isListedAddress(host, port) && !(isHttps && this.isPublic(host));
    if (LOCAL_NAME.test(host)) return LOOPBACK.every((address) => !this.isListedAddress(address, port));
    // Without TLS a name has to lead into a listed network.
    return !isHttps && !this.#entries.some((entry) => entry.network !== undefined && fitsPort(entry, port));
  }

  /** Whether this is a global unicast address, looked at as the address that is called in the end. */
  isPublic(text: string): boolean {
    const address = readAddress(text);
    if (address === undefined || address.range() !== 'unicast') return false;
    return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
  }
}

export type Target = { readonly host: string; readonly port: number; readonly protocol: string };

/** What an address leads to; `host` without the brackets of an IPv6 literal. */
export function targetOf(url: { hostname: string; port?: string; protocol: string }): Target {
  const { hostname, protocol } = url;
  const port = Number(url.port) || (protocol === 'https:' ? 443 : 80);
  return { host: hostname.replace(/^\[|\]$/g, ''), port, protocol };
}

/** RFC 6761 section 6.3: these names lead to this machine, no matter who is asked. */
const LOCAL_NAME = /(?:^|\.)localhost\.?$/;
const LOOPBACK = ['127.0.0.1', '::1'];

/** Unwraps IPv4 inside IPv6: mapped (RFC 4291 section 2.5.5.2) and translated (RFC 6052). */
function readAddress(text: string): Address | undefined {
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  if (address instanceof ipaddr.IPv4 || !address.match(NAT64)) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

function fitsPort(entry: Entry, port: number): boolean {
  return entry.port === undefined || entry.port === port;
}

function contains({ network }: Entry, address: Address): boolean {
  if (network === undefined || network[0].kind() !== address.kind()) return false;
  return address.match(network[0], network[1]);
}

function readEntry(text: string): Entry {
  const entry = text.trim().toLowerCase();
  if (ipaddr.isValidCIDR(entry)) return { network: ipaddr.parseCIDR(entry) };
  if (entry.includes('/')) throw unreadable(text);
  if (ipaddr.IPv6.isValid(entry)) return { network: single(entry) };

  const { host = '', port: portText } = ENTRY.exec(entry)?.groups ?? {};
  const port = portText === undefined ? {} : { port: Number(portText) };
  const literal = host.startsWith('[') ? host.slice(1, -1) : host;
  if (ipaddr.IPv6.isValid(literal) || ipaddr.IPv4.isValidFourPartDecimal(literal)) {
    return { network: single(literal), ...port };
  }
  // A last label of digits only would be read as a number by the URL parser and never match.
  if (!NAME.test(host) || /(^|\.)\d+$/.test(host)) throw unreadable(text);
  return host.startsWith('*.') ? { suffix: host.slice(1), ...port } : { host, ...port };
}

function unreadable(text: string): Error {
  return new Error(
    `OUTBOUND_ALLOW: "${text}" is neither a host (backend.example, *.example) nor a network (10.0.0.0/8) nor an ` +
      'address, each host or address also with a port (127.0.0.1:8080)',
  );
}

function single(text: string): readonly [Address, number] {
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
