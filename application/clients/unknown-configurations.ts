import type { Client } from '../../domain/clients/client.ts';
import { closestName } from '../../domain/shared/closest-name.ts';
import type { Finding } from '../../domain/shared/finding.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** A written client, with warnings about unknown names in its restrictions. */
export type WrittenClient = Client & { readonly findings?: readonly Finding[] };

/** Maximum number of warnings. */
const MAX_WARNINGS = 20;

/** A client restricted to unknown configurations may use nothing, but the configurations may be created later. */
export async function withUnknownNames(tenant: TenantConfiguration, client: Client): Promise<WrittenClient> {
  const { allowedIssuanceConfigs, allowedPresentationConfigs } = client;
  const findings = [
    ...(await unknownOf('allowedIssuanceConfigs', allowedIssuanceConfigs, () => tenant.writtenCredentialConfigurations())),
    ...(await unknownOf('allowedPresentationConfigs', allowedPresentationConfigs, () => tenant.presentationConfigurations())),
  ];
  return findings.length === 0 ? client : { ...client, findings };
}

async function unknownOf(
  member: 'allowedIssuanceConfigs' | 'allowedPresentationConfigs',
  names: readonly string[] | null,
  list: () => Promise<readonly { readonly id: string }[]>,
): Promise<readonly Finding[]> {
  if (names === null || names.length === 0) return [];
  const knownIds = (await list()).map(({ id }) => id);
  return names
    .filter((name) => !knownIds.includes(name))
    .slice(0, MAX_WARNINGS)
    .map((name) => {
      const suggestion = closestName(name, knownIds);
      return {
        rule: 'docs/reference/roles.md, Clients that are restricted',
        member,
        concerns: 'the client',
        message: `the configuration ${JSON.stringify(name)} does not exist, so this id allows nothing`,
        change: suggestion === undefined ? 'create it, or remove the id' : `make it, or write ${suggestion}`,
      };
    });
}
