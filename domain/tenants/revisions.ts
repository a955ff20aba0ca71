/**
 * Kinds of tenant configuration; each has a revision, which every write of the kind increments. The migration of a new kind adds it to
 * existing tenants.
 */
export const CONFIGURED_KINDS = [
  'tenant',
  'clients',
  'issuance',
  'credentials',
  'presentations',
  'keyChains',
  'registrar',
  'registrationCertificates',
  'statusLists',
  'trustLists',
  'webhookSecret',
] as const;
export type ConfiguredKind = (typeof CONFIGURED_KINDS)[number];

/** Revisions of all kinds; `all` is incremented by processes of an older release, which use a single revision. */
export type StoredRevisions = { readonly [kind in ConfiguredKind | 'all']: number };

/** Revisions of the kinds on which a decision depends. */
export type Revisions = { readonly [kind in ConfiguredKind | 'all']?: number };

const NONE = Object.fromEntries(CONFIGURED_KINDS.map((kind) => [kind, 0])) as Record<ConfiguredKind, 0>;

/** Revisions of a new tenant; they differ from those of an earlier tenant with the same id. */
export function firstRevisions(createdAt: Date): StoredRevisions {
  return { all: createdAt.getTime() % 2 ** 30, ...NONE };
}
