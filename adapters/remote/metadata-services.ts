import ipaddr from 'ipaddr.js';
import type { Address } from './allow-list.ts';

/**
 * Addresses at which clouds give a machine its identity and its credentials. A tenant that may call any private address could fetch them,
 * so they need an entry of their own.
 */
const NETWORKS_V4 = [
  // All of the link-local addresses: AWS, Azure, Google and most others at .169.254, containers of AWS at .170.2.
  '169.254.0.0/16',
  // Alibaba
  '100.100.100.200/32',
  // Azure's wire server, a public address that only its machines reach
  '168.63.129.16/32',
  // Oracle
  '192.0.0.192/32',
].map((text) => ipaddr.IPv4.parseCIDR(text));

const NETWORKS_V6 = [
  // AWS
  'fd00:ec2::/32',
  // Google
  'fd20:ce::254/128',
  // Scaleway
  'fd00:42::42/128',
  // Oracle
  'fd00:c1::a9fe:a9fe/128',
  // OpenStack
  'fe80::a9fe:a9fe/128',
].map((text) => ipaddr.IPv6.parseCIDR(text));

const NAMES: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.azure.com',
  'metadata.tencentyun.com',
  'metadata.oraclecloud.com',
  'metadata.packet.net',
  'metadata.platformequinix.com',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** @param host in lower case. */
export function isMetadataName(host: string): boolean {
  return NAMES.has(host.endsWith('.') ? host.slice(0, -1) : host);
}

/** Returns true if the address, or one that is embedded in it, belongs to a metadata service. */
export function isMetadataAddress(address: Address): boolean {
  if (address instanceof ipaddr.IPv4) return NETWORKS_V4.some((network) => address.match(network));
  return NETWORKS_V6.some((network) => address.match(network)) || innerAddresses(address).some(isMetadataAddress);
}

const TEREDO = ipaddr.IPv6.parseCIDR('2001::/32');
const LOCAL_NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b:1::/48');
/** RFC 6052 section 2.2: positions of the bytes behind a prefix of 48, 56 and 64 bits. */
const NAT64_POSITIONS = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
];
const SIX_TO_FOUR = ipaddr.IPv6.parseCIDR('2002::/16');

/**
 * IPv4 addresses that a router may read from it: the last 32 bits of mapped, compatible and translated ones (RFC 4291 section 2.5.5, RFC
 * 6052, RFC 8215) and of ISATAP (RFC 5214), and those of 6to4 (RFC 3056) and Teredo (RFC 4380).
 */
function innerAddresses(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  const lastBytes = bytes.slice(12);
  const inner = [lastBytes];
  if (address.match(SIX_TO_FOUR)) inner.push(bytes.slice(2, 6));
  if (address.match(TEREDO)) inner.push(lastBytes.map((byte) => byte ^ 0xff));
  if (address.match(LOCAL_NAT64)) {
    for (const positions of NAT64_POSITIONS) inner.push(positions.map((position) => bytes[position] ?? 0));
  }
  return inner.map((four) => new ipaddr.IPv4(four));
}
