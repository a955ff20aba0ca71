import type { DcqlQuery } from '../../domain/dcql/query.ts';
import { typeOf } from '../../domain/issuance/metadata.ts';
import { type ShownCredential, shownClaims } from '../../domain/issuance/shown-credential.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** What a query asks for, in the names of the tenant's own configuration of that type, where it has one. */
export async function askedCredentials(configured: TenantConfiguration, query: JsonObject): Promise<readonly ShownCredential[]> {
  const own = await configured.credentialConfigurations();
  return (query as unknown as DcqlQuery).credentials.map(({ id, format, meta, claims = [] }) => {
    const { vct_values: types, doctype_value: documentType } = meta as {
      readonly vct_values?: readonly string[];
      readonly doctype_value?: string;
    };
    const names = types ?? (documentType === undefined ? [] : [documentType]);
    const known = own.find((one) => names.some((name) => typeOf(one, configured.issuer) === `${format} ${name}`));
    const paths = claims.map(({ path }) => path);
    return { id: names[0] ?? id, displays: known?.config.display ?? [], claims: shownClaims(paths, known) };
  });
}
