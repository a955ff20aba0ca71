import type { DcqlQuery } from '../../domain/dcql/query.ts';
import { type CredentialPreview, claimPreviews } from '../../domain/issuance/credential-preview.ts';
import { typeOf } from '../../domain/issuance/metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** The credentials of a query, with the display names of the tenant's own configuration of that type, if there is one. */
export async function previewQueriedCredentials(tenant: TenantConfiguration, query: JsonObject): Promise<readonly CredentialPreview[]> {
  const configurations = await tenant.credentialConfigurations();
  return (query as unknown as DcqlQuery).credentials.map(({ id, format, meta, claims = [] }) => {
    const { vct_values: types, doctype_value: documentType } = meta as {
      readonly vct_values?: readonly string[];
      readonly doctype_value?: string;
    };
    const names = types ?? (documentType === undefined ? [] : [documentType]);
    const configuration = configurations.find((entry) => names.some((name) => typeOf(entry, tenant.issuer) === `${format} ${name}`));
    const paths = claims.map(({ path }) => path);
    return { id: names[0] ?? id, displays: configuration?.config.display ?? [], claims: claimPreviews(paths, configuration) };
  });
}
