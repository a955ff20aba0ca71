/**
 * Kinds of what is configured of a tenant; each has a revision of its own, which every write of the kind raises. The migration of
 * a new one gives it to the tenants that there are.
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

/** Of all kinds; `all` is raised by processes of an older release, which know one revision only. */
export type StoredRevisions = { readonly [kind in ConfiguredKind | 'all']: number };

/** Revisions of the kinds that something rests on. */
export type Revisions = { readonly [kind in ConfiguredKind | 'all']?: number };

const NONE = Object.fromEntries(CONFIGURED_KINDS.map((kind) => [kind, 0])) as Record<ConfiguredKind, 0>;

/** Of a tenant that was just made; another one that had its id before is not taken for it. */
export function firstRevisions(createdAt: Date): StoredRevisions {
  return { all: createdAt.getTime() % 2 ** 30, ...NONE };
}
