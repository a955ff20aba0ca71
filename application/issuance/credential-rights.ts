import { mayUse } from '../../domain/clients/client.ts';
import { assertNoForeignIdentifiers, type IdentifiedConfiguration } from '../../domain/clients/foreign-identifiers.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { scopeOf, typeAddress, vctOf } from '../../domain/issuance/metadata.ts';
import { findKeyChain, type KeyChain } from '../../domain/keys/key-chain.ts';
import type { InteractiveAction } from '../../domain/oauth/interactive-action.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import type { TenantRepositories } from '../ports/repositories.ts';

type ConfigurationWrite = {
  readonly nextConfiguration: CredentialConfiguration;
  readonly previousConfiguration: CredentialConfiguration | undefined;
  readonly configurations: readonly CredentialConfiguration[];
  readonly chains: readonly KeyChain[];
  readonly now: Date;
};

/** @throws Failure `forbidden` for a restricted client that gives its configuration the type, scope or key of another. */
export function assertOwnCredential(
  { allowedIssuanceConfigs, tenant: { issuer } }: TenantCaller,
  { nextConfiguration, previousConfiguration, configurations, chains, now }: ConfigurationWrite,
): void {
  const defaultKey = findKeyChain(chains, 'signing', now)?.id;
  const namesOf = (configuration: CredentialConfiguration): IdentifiedConfiguration => {
    const { id, config, vct, keyChainId } = configuration;
    const isMdoc = config.format === 'mso_mdoc';
    const parent = typeof vct === 'object' ? vct?.extends : undefined;
    // A type is reserved in all formats, and so is the address of a hosted type.
    const types = isMdoc ? [config.docType] : [vctOf(configuration, issuer), parent];
    const key = keyChainId ?? defaultKey;
    return {
      id,
      names: {
        'the type': defined([...types, ...(configuration === nextConfiguration ? [] : [typeAddress({ id }, issuer)])]),
        'config.scope': [scopeOf(configuration)],
        // Without a key a new configuration uses the default key, which is common to all.
        keyChainId: defined([
          configuration === nextConfiguration && previousConfiguration === undefined && key === defaultKey ? undefined : key,
        ]),
      },
    };
  };
  assertNoForeignIdentifiers(
    allowedIssuanceConfigs,
    namesOf(nextConfiguration),
    previousConfiguration && namesOf(previousConfiguration),
    configurations.map(namesOf),
  );
}

function defined(names: readonly (string | undefined)[]): readonly string[] {
  return names.filter((name) => name !== undefined);
}

/**
 * Checks the presentations that the user has to make before the issuance. The backend of the issuance receives the result, so naming a
 * presentation configuration requires a role for presentations, and a restricted client may name only its own configurations.
 * References that were stored before are accepted.
 * @throws Failure `forbidden`, `invalid_input`.
 */
export async function assertMayRequestPresentations(
  { presentationConfigurations }: TenantRepositories,
  { allowedPresentationConfigs, roles }: TenantCaller,
  iaeActions: readonly InteractiveAction[] | null | undefined,
  storedConfiguration: CredentialConfiguration | undefined,
): Promise<void> {
  const storedIds = new Set((storedConfiguration?.iaeActions ?? []).map(presentationOf));
  const mayAsk = roles.includes('presentation:manage') || roles.includes('presentation:request');
  for (const [index, action] of (iaeActions ?? []).entries()) {
    const id = presentationOf(action);
    if (id === undefined) continue;
    const path = `iaeActions.${index}.presentationConfigId`;
    if (!mayAsk && !storedIds.has(id)) {
      const message = `${path}: a presentation configuration requires presentation:manage or presentation:request`;
      throw new Failure('forbidden', message);
    }
    const exists = (await presentationConfigurations.find(id)) !== undefined;
    if (exists && (mayUse(allowedPresentationConfigs, id) || storedIds.has(id))) continue;
    throw invalidInput(path, 'there is no such presentation configuration');
  }
}

/**
 * Checks the right to name a webhook that receives presented claims: it requires the right to request these presentations.
 * @throws Failure `forbidden` for a webhook of a configuration that requires a presentation.
 */
export function assertMayReceivePresentations(
  { allowedPresentationConfigs, roles }: Pick<TenantCaller, 'allowedPresentationConfigs' | 'roles'>,
  iaeActions: readonly InteractiveAction[] | null | undefined,
  path: string,
): void {
  const requestedIds = (iaeActions ?? []).flatMap((action) => presentationOf(action) ?? []);
  const mayAsk = roles.includes('presentation:manage') || roles.includes('presentation:request');
  if (requestedIds.every((id) => mayAsk && mayUse(allowedPresentationConfigs, id))) return;
  const needed = 'presentation:manage or presentation:request, and the right to use the configurations of iaeActions';
  throw new Failure('forbidden', `${path}: it receives presented data, so it requires ${needed}`);
}

function presentationOf(action: InteractiveAction): string | undefined {
  return action.type === 'openid4vp_presentation' ? action.presentationConfigId : undefined;
}
