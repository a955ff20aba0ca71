import { Failure } from '../shared/failure.ts';

/** Kinds of which a tenant has a limited number, set by the operator. */
export const COUNTED_KINDS = {
  'credential-configuration': { setting: 'QUOTA_CREDENTIAL_CONFIGS', many: 'credential configurations' },
  'presentation-configuration': { setting: 'QUOTA_PRESENTATION_CONFIGS', many: 'presentation configurations' },
  'key-chain': { setting: 'QUOTA_KEY_CHAINS', many: 'key chains' },
  client: { setting: 'QUOTA_CLIENTS', many: 'clients' },
} as const;
export type CountedKind = keyof typeof COUNTED_KINDS;

/** Kinds whose documents share a size limit. Keys are excluded: renewals must not fail because of other documents. */
export const SIZED_KINDS = [
  'credential-configuration',
  'presentation-configuration',
  'issuance-configuration',
  'registrar-configuration',
] as const;
type SizedKind = (typeof SIZED_KINDS)[number];

export type Quotas = Readonly<Record<CountedKind, number>> & {
  readonly bytes: number;
  /** Limit of the stored bytes of all its open sessions. */
  readonly sessionBytes: number;
};

export function isCountedKind(kind: string): kind is CountedKind {
  return Object.hasOwn(COUNTED_KINDS, kind);
}

export function isSizedKind(kind: string): kind is SizedKind {
  return (SIZED_KINDS as readonly string[]).includes(kind);
}

/** @param count including the new one. @throws Failure `conflict` with the name of the setting. */
export function assertCountQuota(kind: CountedKind, count: number, quotas: Quotas): void {
  if (count <= quotas[kind]) return;
  const { setting, many } = COUNTED_KINDS[kind];
  throw new Failure('conflict', `a tenant may have at most ${quotas[kind]} ${many} (${setting}); delete one first`);
}

/** @param bytes including the new document. @throws Failure `conflict` with the name of the setting. */
export function assertSizeQuota(bytes: number, quotas: Quotas): void {
  if (bytes <= quotas.bytes) return;
  const message =
    `the configurations of a tenant may have at most ${quotas.bytes} bytes in total (QUOTA_CONFIG_BYTES); ` +
    'make them smaller, or delete one first';
  throw new Failure('conflict', message);
}
