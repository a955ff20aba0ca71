import { parseDisclosureFrame } from '../../domain/formats/sd-jwt/disclosure-frame.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { typeAddress, vctOf } from '../../domain/issuance/metadata.ts';
import { integrityOf, typeMetadata } from '../../domain/issuance/type-metadata.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** The document at a `vct` of this service: the very bytes that are served, and their hash where credentials carry it. */
export type HostedType = { readonly text: string; readonly integrity?: string };

/** @returns undefined for a type that is described elsewhere or nowhere. */
export function hostedType(configured: TenantConfiguration, configuration: CredentialConfiguration): HostedType | undefined {
  const { issuer } = configured;
  if (!isHosted(configuration, issuer)) return undefined;
  return configured.deriveOf(configuration, `hosted-type/${configuration.id}`, () => {
    const { frozenType } = configuration;
    if (frozenType === undefined) return { text: compose(configuration, issuer) };
    return { text: frozenType, integrity: integrityOf(frozenType) };
  });
}

/**
 * A configuration as it is stored, with its document when that is frozen. A release that composes documents in another way
 * leaves those that are frozen as they are.
 * @param issuer Credential Issuer Identifier.
 * @throws Failure `conflict` for a change of what a frozen document is made of; `invalid_input` where there is no document.
 */
export function withFrozenType(
  after: CredentialConfiguration,
  before: CredentialConfiguration | undefined,
  issuer: string,
): CredentialConfiguration {
  const { frozenType: _none, ...rest } = after;
  if (after.vctIntegrity !== true) return rest;
  const { frozenType } = before ?? {};
  if (!isHosted(after, issuer)) {
    // Whoever says nothing of the promise is not told to leave it out.
    if (frozenType !== undefined) throw frozen();
    throw invalidInput('vctIntegrity', 'the service hosts no metadata of this type; leave it out');
  }
  const composed = compose(after, issuer);
  if (before === undefined || frozenType === undefined) return { ...rest, frozenType: composed };
  if (compose(before, issuer) === composed) return { ...rest, frozenType };
  throw frozen();
}

function frozen(): Failure {
  return new Failure(
    'conflict',
    'credentials carry the hash of the type metadata, which this would change; make another configuration, or set vctIntegrity to false',
  );
}

/** @throws Failure `conflict` as long as credentials may be checked against the document. */
export function assertNotFrozen({ frozenType }: Pick<CredentialConfiguration, 'frozenType'>): void {
  if (frozenType === undefined) return;
  throw new Failure(
    'conflict',
    'credentials carry the hash of its type metadata, which have to stay; set vctIntegrity to false when none is left',
  );
}

function isHosted(configuration: CredentialConfiguration, issuer: string): boolean {
  const isMdoc = configuration.config.format === 'mso_mdoc';
  return !isMdoc && vctOf(configuration, issuer) === typeAddress(configuration, issuer);
}

function compose(configuration: CredentialConfiguration, issuer: string): string {
  const { disclosureFrame: frame } = configuration;
  const read = frame === null || frame === undefined ? undefined : parseDisclosureFrame(frame);
  return JSON.stringify(typeMetadata(configuration, issuer, read));
}
