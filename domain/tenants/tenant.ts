import { object, z } from 'zod';
import { Role } from '../clients/role.ts';
import { Reference, wholeNumber } from '../shared/bounds.ts';
import { Profile } from '../shared/finding.ts';
import type { TenantId } from '../shared/ids.ts';
import { strictInput } from '../shared/input-object.ts';
import { type Organization, organizationProperties } from './organization.ts';
import type { TenantStatus } from './tenant-status.ts';

export { SERVING, type TenantStatus } from './tenant-status.ts';

export type Tenant = Organization & {
  readonly id: TenantId;
  readonly name: string;
  readonly description: string | null;
  readonly status: TenantStatus;
  readonly sessionConfig: SessionStorageConfig | null;
  readonly statusListConfig: StatusListConfig | null;
  /** KMS provider for new keys; null for the service's default. */
  readonly kms: string | null;
  readonly profile: Profile | null;
  /** Time of its deletion with all its data; null for never. */
  readonly endsAt: Date | null;
  /** Incremented with every change of the tenant's configuration, clients or keys; part of cache keys. */
  readonly revision: number;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** First path segments of the service's own routes; a tenant with such an id would be unreachable. */
export const RESERVED_TENANT_IDS: ReadonlySet<string> = new Set([
  'api',
  'audit-log',
  'cache',
  'certs',
  'client',
  'console',
  'credentials',
  'deferred_credential',
  'docs',
  'health',
  'issuer',
  'key',
  'key-chain',
  'metrics',
  'oauth2',
  'openapi',
  'registrar',
  'session',
  'session-config',
  'settings',
  'status-list',
  'status-list-config',
  'status-lists',
  'tenant',
  'tenant-removal',
  'trust',
  'trust-list',
  'verifier',
  'webhook-secret',
  'well-known',
]);

export const TenantIdSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and hyphens, at most 63')
  .refine((id) => !RESERVED_TENANT_IDS.has(id), 'this name is reserved for an address of the service')
  .transform((id) => id as TenantId);

const seconds = (minimum: number) => wholeNumber(minimum, 315_360_000);

/** Retention of sessions. A null field stands for the global default. */
export const SessionStorageConfig = strictInput({
  ttlSeconds: seconds(60).nullish().describe('Lifetime of a session in seconds. Default: `SESSION_TTL`'),
  cleanupMode: z
    .enum(['full', 'anonymize'])
    .optional()
    .describe('Treatment of ended sessions: removed, or stored without their requests and results'),
}).meta({ id: 'SessionStorageConfig' });
export type SessionStorageConfig = z.infer<typeof SessionStorageConfig>;

/** Shape of future status lists. A null field stands for the global default. */
export const StatusListConfig = strictInput({
  capacity: wholeNumber(100, 10_000_000).nullish().describe('Entries of a list. Default: `STATUS_CAPACITY`'),
  bits: z
    .literal([1, 2, 4, 8], '1, 2, 4 or 8')
    .nullish()
    .describe('Bits per entry: 1 for valid and revoked, 2 or more also for suspended. Default: `STATUS_BITS`'),
  ttl: seconds(60).nullish().describe('Validity of a list token in seconds. Default: `STATUS_TTL`'),
  immediateUpdate: z.boolean().nullish().describe('Publishes changes immediately; otherwise when the published token expires'),
  enableAggregation: z.boolean().nullish().describe('Lists the addresses in one document. Default: true'),
}).meta({ id: 'StatusListConfig' });
export type StatusListConfig = z.infer<typeof StatusListConfig>;

const Name = z.string().trim().min(1).max(200).describe('For administrators; wallets show `display` of the issuer');
const Description = z.string().max(1000).nullish().describe('For administrators');
const SessionConfig = SessionStorageConfig.nullish().describe('Retention of sessions');
const StatusConfig = StatusListConfig.nullish().describe('Parameters of new status lists');

const KeyProviderName = Reference.nullish().describe(
  'Provider of its next keys, one of `GET /key-chain/providers`; null: the one of `KMS_CONFIG`. Existing keys stay at their provider',
);

const TenantProfile = Profile.nullish().describe(
  'Profile whose rules apply to the tenant. `haip`: OpenID4VC High Assurance Interoperability Profile 1.0 and the FAPI 2.0 rules ' +
    'that it references. `eu`: these, and the rules of the European Digital Identity Wallet (ARF 3.0). The rules override the configuration, and a configuration that violates them is rejected',
);

const EndsAt = z.iso
  .datetime({ offset: true })
  .nullish()
  .describe(
    'Time at which the tenant is removed with all its data, as by DELETE; from then on all its requests are rejected. At most ten years ' +
      'from now; null: never',
  );

const AdministratorRoles = z
  .array(Role)
  .max(20)
  .optional()
  .describe('Roles of the client `<tenant>-admin`, which is created with them; its secret is shown once');

export const TenantCreation = object({
  id: TenantIdSchema.describe('First segment of all its addresses for wallets; never changes'),
  name: Name,
  description: Description,
  roles: AdministratorRoles,
  sessionConfig: SessionConfig,
  statusListConfig: StatusConfig,
  kms: KeyProviderName,
  profile: TenantProfile,
  endsAt: EndsAt,
  ...organizationProperties,
}).meta({ id: 'TenantCreation' });
export type TenantCreation = z.infer<typeof TenantCreation>;

const { id: _id, name: _name, description: _description, ...settings } = TenantCreation.shape;

export const TenantUpdate = object({
  name: Name.optional(),
  description: Description,
  status: z
    .enum(['active', 'suspended'])
    .optional()
    .describe('Requests of clients and wallets of a suspended tenant are rejected; its status lists are still served'),
  ...settings,
  roles: AdministratorRoles.meta({ minItems: 1 }),
}).meta({ id: 'TenantUpdate' });
export type TenantUpdate = z.infer<typeof TenantUpdate>;

/** The client that is created with `roles` of a tenant: its administrator. */
export function administratorOf(tenantId: TenantId): string {
  return `${tenantId}-admin`;
}

/** Effective shape of a new status list: the tenant's setting, or the global default. */
export function effectiveStatusListConfig(
  settings: StatusListConfig | null,
  defaults: { readonly capacity: number; readonly bits: 1 | 2 | 4 | 8; readonly ttl: number },
) {
  return {
    capacity: settings?.capacity ?? defaults.capacity,
    bits: settings?.bits ?? defaults.bits,
    ttl: settings?.ttl ?? defaults.ttl,
    immediateUpdate: settings?.immediateUpdate ?? false,
    enableAggregation: settings?.enableAggregation ?? true,
  };
}
