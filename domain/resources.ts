import type { z } from 'zod';
import { clientResource } from './clients/client.resource.ts';
import { credentialConfigurationResource } from './issuance/credential-configuration.resource.ts';
import { issuanceConfigurationResource } from './issuance/issuance-configuration.resource.ts';
import { keyChainResource } from './keys/key-chain.resource.ts';
import { registrarConfigurationResource, registrationCertificateResource } from './registrar/registrar-configuration.resource.ts';
import type { Resource } from './shared/resource.ts';
import { statusListResource } from './status-lists/status-list.resource.ts';
import type { ConfiguredKind } from './tenants/revisions.ts';
import { sessionSettingsResource, statusListSettingsResource } from './tenants/settings.resource.ts';
import { tenantResource } from './tenants/tenant.resource.ts';
import { trustListResource } from './trust-lists/trust-list.resource.ts';
import { presentationConfigurationResource } from './verification/presentation-configuration.resource.ts';
import { webhookSecretResource } from './webhooks/webhook-secret.resource.ts';

export const RESOURCES = [
  tenantResource,
  clientResource,
  keyChainResource,
  issuanceConfigurationResource,
  credentialConfigurationResource,
  presentationConfigurationResource,
  registrarConfigurationResource,
  registrationCertificateResource,
  statusListResource,
  trustListResource,
  sessionSettingsResource,
  statusListSettingsResource,
  webhookSecretResource,
] as const;

type AnyResource = (typeof RESOURCES)[number];
export type ResourceKind = AnyResource['kind'];
type ResourceOf<Kind> = Extract<AnyResource, { readonly kind: Kind }>;

/** Kinds that are audited. */
export type AuditedKind = Extract<AnyResource, { readonly auditedValues: unknown }>['kind'];
/** Kinds with edit tags, which prevent administrators from overwriting each other's changes. */
export type EditedKind = Extract<AnyResource, { readonly editablePart: unknown }>['kind'];
export type DocumentKind = Extract<AnyResource, { readonly isDocument: true }>['kind'];
export type FileKind = Extract<AnyResource, { readonly file: unknown }>['kind'];

export type RepositoryOf<Kind extends ResourceKind> = ResourceOf<Kind>['repository'];

export type StoredResource<Kind extends ResourceKind> = ResourceOf<Kind> extends { readonly stored?: infer T } ? NonNullable<T> : never;

export type FileBody<Kind extends FileKind> =
  ResourceOf<Kind> extends { readonly file: infer File }
    ?
        | (File extends { readonly body: infer Body extends z.ZodType } ? z.infer<Body> : never)
        | (File extends { readonly alternative: { readonly body: infer Other extends z.ZodType } } ? z.infer<Other> : never)
    : never;

type DocumentResource = Extract<AnyResource, { readonly isDocument: true }>;
export const DOCUMENTS: readonly (DocumentResource & { readonly revision: ConfiguredKind })[] = RESOURCES.filter(
  (resource) => 'isDocument' in resource,
);

const BY_KIND: ReadonlyMap<string, Resource<never>> = new Map(RESOURCES.map((resource) => [resource.kind, resource as Resource<never>]));

export function resourceOf(kind: ResourceKind): Resource<never> {
  return BY_KIND.get(kind) as Resource<never>;
}
