import { mayUse } from '../../domain/clients/client.ts';
import { assertOwnNames, type Named } from '../../domain/clients/own-names.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { scopeOf, typeAddress, vctOf } from '../../domain/issuance/metadata.ts';
import { findKeyChain, type KeyChain } from '../../domain/keys/key-chain.ts';
import type { InteractiveAction } from '../../domain/oauth/interactive-action.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import type { TenantRepositories } from '../ports/repositories.ts';

type Written = {
  readonly after: CredentialConfiguration;
  readonly before: CredentialConfiguration | undefined;
  /** All of the tenant, as they are. */
  readonly all: readonly CredentialConfiguration[];
  readonly chains: readonly KeyChain[];
  readonly now: Date;
};

/** @throws Failure `forbidden` for a restricted client that gives its configuration the type, scope or key of another. */
export function assertOwnCredential(
  { allowedIssuanceConfigs, configured: { issuer } }: TenantCaller,
  { after, before, all, chains, now }: Written,
): void {
  const defaultKey = findKeyChain(chains, 'signing', now)?.id;
  const named = (configuration: CredentialConfiguration): Named => {
    const { id, config, vct, keyChainId } = configuration;
    const isMdoc = config.format === 'mso_mdoc';
    const parent = typeof vct === 'object' ? vct?.extends : undefined;
    // One type counts in all formats; and what a hosted type is called is kept for it.
    const types = isMdoc ? [config.docType] : [vctOf(configuration, issuer), parent];
    const key = keyChainId ?? defaultKey;
    return {
      id,
      names: {
        'the type': defined([...types, ...(configuration === after ? [] : [typeAddress({ id }, issuer)])]),
        'config.scope': [scopeOf(configuration)],
        // A new configuration may sign with what all sign with that name no key.
        keyChainId: defined([configuration === after && before === undefined && key === defaultKey ? undefined : key]),
      },
    };
  };
  assertOwnNames(allowedIssuanceConfigs, named(after), before && named(before), all.map(named));
}

function defined(names: readonly (string | undefined)[]): readonly string[] {
  return names.filter((name) => name !== undefined);
}

/**
 * What the user has to present before the issuance must be something that can be asked for. Whoever asks for it is told
 * the answer, so naming a presentation takes a role for presentations; and for a restricted client there are only its own
 * configurations. What somebody else named here before may stay.
 * @throws Failure `forbidden`, `invalid_input`.
 */
export async function assertMayAskFor(
  { presentationConfigurations }: TenantRepositories,
  { allowedPresentationConfigs, roles }: TenantCaller,
  iaeActions: readonly InteractiveAction[] | null | undefined,
  before: CredentialConfiguration | undefined,
): Promise<void> {
  const named = new Set((before?.iaeActions ?? []).map(presentationOf));
  const mayAsk = roles.includes('presentation:manage') || roles.includes('presentation:request');
  for (const [index, action] of (iaeActions ?? []).entries()) {
    const id = presentationOf(action);
    if (id === undefined) continue;
    const path = `iaeActions.${index}.presentationConfigId`;
    if (!mayAsk && !named.has(id)) {
      const message = `${path}: naming a presentation configuration needs presentation:manage or presentation:request`;
      throw new Failure('forbidden', message);
    }
    const isKnown = (await presentationConfigurations.find(id)) !== undefined;
    if (isKnown && (mayUse(allowedPresentationConfigs, id) || named.has(id))) continue;
    throw invalidInput(path, 'there is no such presentation configuration');
  }
}

/**
 * A backend of credentials is told what was presented, so who says which backend that is may ask for it, too.
 * @throws Failure `forbidden` for a webhook of a configuration that asks for a presentation.
 */
export function assertMayHear(
  { allowedPresentationConfigs, roles }: Pick<TenantCaller, 'allowedPresentationConfigs' | 'roles'>,
  iaeActions: readonly InteractiveAction[] | null | undefined,
  path: string,
): void {
  const asked = (iaeActions ?? []).flatMap((action) => presentationOf(action) ?? []);
  const mayAsk = roles.includes('presentation:manage') || roles.includes('presentation:request');
  if (asked.every((id) => mayAsk && mayUse(allowedPresentationConfigs, id))) return;
  const needed = 'presentation:manage or presentation:request, and leave to use what iaeActions name';
  throw new Failure('forbidden', `${path}: it is told what was presented, so naming it needs ${needed}`);
}

function presentationOf(action: InteractiveAction): string | undefined {
  return action.type === 'openid4vp_presentation' ? action.presentationConfigId : undefined;
}
