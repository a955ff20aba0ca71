import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, type Entry, parseEntry } from './allow-list.ts';
import { isMetadataAddress, isMetadataName } from './metadata-services.ts';

/** RFC 6052 section 2.1: the last 32 bits are the IPv4 address that a translator will call. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** RFC 4291 section 2.4 as assigned by IANA: whatever lies outside is not a global unicast address. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

export type Target = { readonly host: string; readonly port: number; readonly protocol: string };

/**
 * Decides which addresses may be called. Everything global is allowed; what lies inside needs an entry: a host
 * (`backend.example`, `*.example`), a network (`10.0.0.0/8`), an address, each host or address also with a port, and
 * each of these for one tenant (`acme=10.0.0.0/8`). Metadata services of clouds need an entry that names just them.
 */
export class AddressGuard {
  readonly #entries: readonly Entry[];

  /** @throws Error that names an entry which cannot be read. */
  constructor(allow: readonly string[]) {
    this.#entries = allow.map(parseEntry);
  }

  /**
   * The same for the calls of one tenant; `undefined` stands for the service itself.
   * @param isSigned whether what is fetched is signed, so that TLS is not needed in public.
   */
  of(tenantId: string | undefined, isSigned = false): GuardOfOne {
    return new GuardOfOne(
      this.#entries.filter((entry) => entry.tenantId === undefined || entry.tenantId === tenantId),
      isSigned,
    );
  }
}

/** What one tenant may call. */
export class GuardOfOne {
  readonly #entries: readonly Entry[];
  readonly #isSigned: boolean;

  constructor(entries: readonly Entry[], isSigned: boolean) {
    this.#entries = entries;
    this.#isSigned = isSigned;
  }

  /** Whether a connection may be made to this address, which `target` leads to. */
  permits({ host, port, protocol }: Target, text: string): boolean {
    const address = parseAddress(text);
    if (address === undefined || !this.#permitsName(host, port)) return false;
    if (isMetadataAddress(address)) return this.#isListedAlone(address, port) || (isMetadataName(host) && this.#isNamed(host, port));
    if (this.isListedHost(host, port) || this.#isListed(address, port)) return true;
    return this.#isPublicly(protocol, port) && isPublic(address);
  }

  /** @param host lower case, without the brackets of an IPv6 literal. */
  isListedHost(host: string, port: number): boolean {
    const name = withoutDot(host);
    return (
      this.#isNamed(name, port) ||
      this.#entries.some((entry) => fitsPort(entry, port) && entry.suffix !== undefined && name.endsWith(entry.suffix))
    );
  }

  isListedAddress(text: string, port: number): boolean {
    const address = parseAddress(text);
    return address !== undefined && this.#isListed(address, port);
  }

  /** Whether a call of this address is refused whatever a name server says. */
  refuses(text: string): boolean {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return true;
    const target = targetOf(url);
    const { host, port } = target;
    if (isIP(host) !== 0) return !this.permits(target, host);
    if (!this.#permitsName(host, port)) return true;
    if (this.isListedHost(host, port)) return false;
    if (LOCAL_NAME.test(host)) return LOOPBACK.every((address) => !this.isListedAddress(address, port));
    // Without TLS a name has to lead into a listed network.
    return !this.#isPublicly(url.protocol, port) && !this.#entries.some((entry) => entry.network !== undefined && fitsPort(entry, port));
  }

  /** Whether this is a global unicast address, looked at as the address that is called in the end. */
  isPublic(text: string): boolean {
    const address = parseAddress(text);
    return address !== undefined && isPublic(address);
  }

  /** A metadata service is called by its name only where that name is listed, or its address. */
  #permitsName(host: string, port: number): boolean {
    if (!isMetadataName(host) || this.#isNamed(host, port)) return true;
    return this.#entries.some((entry) => entry.network !== undefined && isAlone(entry.network) && fitsPort(entry, port));
  }

  /** How public addresses are called. Without TLS on the port of http alone: no other service is spoken to. */
  #isPublicly(protocol: string, port: number): boolean {
    return protocol === 'https:' || (this.#isSigned && protocol === 'http:' && port === 80);
  }

  #isNamed(host: string, port: number): boolean {
    const name = withoutDot(host);
    return this.#entries.some((entry) => fitsPort(entry, port) && entry.host === name);
  }

  #isListed(address: Address, port: number): boolean {
    return this.#entries.some((entry) => fitsPort(entry, port) && contains(entry, address));
  }

  #isListedAlone(address: Address, port: number): boolean {
    return this.#entries.some(
      (entry) => entry.network !== undefined && isAlone(entry.network) && fitsPort(entry, port) && contains(entry, address),
    );
  }
}

/** What an address leads to; `host` without the brackets of an IPv6 literal. */
export function targetOf(url: { hostname: string; port?: string; protocol: string }): Target {
  const { hostname, protocol } = url;
  const port = Number(url.port) || (protocol === 'https:' ? 443 : 80);
  return { host: hostname.replace(/^\[|\]$/g, '').toLowerCase(), port, protocol };
}

/** RFC 6761 section 6.3: these names lead to this machine, no matter who is asked. */
export const LOCAL_NAME = /(?:^|\.)localhost\.?$/;
export const LOOPBACK = ['127.0.0.1', '::1'];

/** Unwraps IPv4 inside IPv6: mapped (RFC 4291 section 2.5.5.2) and translated (RFC 6052). */
function parseAddress(text: string): Address | undefined {
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  if (address instanceof ipaddr.IPv4 || !address.match(NAT64)) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}

const withoutDot = (host: string) => (host.endsWith('.') ? host.slice(0, -1) : host);

function fitsPort(entry: Entry, port: number): boolean {
  return entry.port === undefined || entry.port === port;
}

/** Whether it is one address and no more. */
function isAlone([address, prefix]: NonNullable<Entry['network']>): boolean {
  return prefix === (address.kind() === 'ipv4' ? 32 : 128);
}

function contains({ network }: Entry, address: Address): boolean {
  if (network === undefined || network[0].kind() !== address.kind()) return false;
  return address.match(network[0], network[1]);
}
