import { Failure } from '../shared/failure.ts';

/** Kinds of which a tenant may have only so many, as the operator says. */
export const COUNTED = {
  'credential-configuration': { setting: 'QUOTA_CREDENTIAL_CONFIGS', many: 'credential configurations' },
  'presentation-configuration': { setting: 'QUOTA_PRESENTATION_CONFIGS', many: 'presentation configurations' },
  'key-chain': { setting: 'QUOTA_KEY_CHAINS', many: 'key chains' },
  client: { setting: 'QUOTA_CLIENTS', many: 'clients' },
} as const;
export type CountedKind = keyof typeof COUNTED;

/** Kinds whose documents count together. Those of keys do not: renewals must not fail for what others wrote. */
export const WEIGHED = [
  'credential-configuration',
  'presentation-configuration',
  'issuance-configuration',
  'registrar-configuration',
] as const;
type WeighedKind = (typeof WEIGHED)[number];

/** What one tenant may have at most. */
export type Quotas = Readonly<Record<CountedKind, number>> & {
  /** Of all its configurations together, as they are stored. */
  readonly bytes: number;
  /** Of all its open sessions together, as they are stored. */
  readonly sessionBytes: number;
};

export function isCounted(kind: string): kind is CountedKind {
  return Object.hasOwn(COUNTED, kind);
}

export function isWeighed(kind: string): kind is WeighedKind {
  return (WEIGHED as readonly string[]).includes(kind);
}

/** @param count with the new one. @throws Failure `conflict` that names the setting. */
export function assertCount(kind: CountedKind, count: number, quotas: Quotas): void {
  if (count <= quotas[kind]) return;
  const { setting, many } = COUNTED[kind];
  throw new Failure('conflict', `a tenant has ${quotas[kind]} ${many} at most (${setting}); delete one first`);
}

/** @param bytes with what was written. @throws Failure `conflict` that names the setting. */
export function assertBytes(bytes: number, quotas: Quotas): void {
  if (bytes <= quotas.bytes) return;
  const message =
    `the configurations of a tenant have ${quotas.bytes} bytes at most together (QUOTA_CONFIG_BYTES); ` +
    'make them smaller, or delete one first';
  throw new Failure('conflict', message);
}
