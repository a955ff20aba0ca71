import type { Client } from '../../domain/clients/client.ts';
import { closestName } from '../../domain/shared/closest-name.ts';
import type { Finding } from '../../domain/shared/finding.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** A client that was written, with names among its restrictions that nothing has. */
export type WrittenClient = Client & { readonly findings?: readonly Finding[] };

/** More are not told at once. */
const MAX_TOLD = 20;

/** A client that is restricted to what there is not may use nothing; its configuration may come later. */
export async function withUnknownNames(configured: TenantConfiguration, client: Client): Promise<WrittenClient> {
  const { allowedIssuanceConfigs, allowedPresentationConfigs } = client;
  const findings = [
    ...(await unknownOf('allowedIssuanceConfigs', allowedIssuanceConfigs, () => configured.writtenCredentialConfigurations())),
    ...(await unknownOf('allowedPresentationConfigs', allowedPresentationConfigs, () => configured.presentationConfigurations())),
  ];
  return findings.length === 0 ? client : { ...client, findings };
}

async function unknownOf(
  member: 'allowedIssuanceConfigs' | 'allowedPresentationConfigs',
  names: readonly string[] | null,
  list: () => Promise<readonly { readonly id: string }[]>,
): Promise<readonly Finding[]> {
  if (names === null || names.length === 0) return [];
  const known = (await list()).map(({ id }) => id);
  return names
    .filter((name) => !known.includes(name))
    .slice(0, MAX_TOLD)
    .map((name) => {
      const meant = closestName(name, known);
      return {
        rule: 'docs/roles.md, Clients that are restricted',
        member,
        concerns: 'the client',
        message: `there is no configuration ${JSON.stringify(name)} at present, so this name allows nothing`,
        change: meant === undefined ? 'make it, or take the name out' : `make it, or write ${meant}`,
      };
    });
}
