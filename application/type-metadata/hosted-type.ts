import { parseDisclosureFrame } from '../../domain/formats/sd-jwt/disclosure-frame.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { typeAddress, vctOf } from '../../domain/issuance/metadata.ts';
import { integrityOf, typeMetadata } from '../../domain/issuance/type-metadata.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** The document at a `vct` of this service: the served text, and its hash if credentials contain it. */
export type HostedType = { readonly text: string; readonly integrity?: string };

/** @returns undefined for a type that is described elsewhere or nowhere. */
export function hostedType(tenant: TenantConfiguration, configuration: CredentialConfiguration): HostedType | undefined {
  const { issuer } = tenant;
  if (!isHosted(configuration, issuer)) return undefined;
  return tenant.deriveOf(configuration, `hosted-type/${configuration.id}`, () => {
    const { frozenType } = configuration;
    if (frozenType === undefined) return { text: compose(configuration, issuer) };
    return { text: frozenType, integrity: integrityOf(frozenType) };
  });
}

/**
 * A configuration for storage, with its document when that is frozen. A version of the service that composes documents in another way
 * keeps frozen documents unchanged.
 * @param issuer Credential Issuer Identifier.
 * @throws Failure `conflict` for a change of a frozen document; `invalid_input` if there is no document.
 */
export function withFrozenType(
  newConfiguration: CredentialConfiguration,
  storedConfiguration: CredentialConfiguration | undefined,
  issuer: string,
): CredentialConfiguration {
  const { frozenType: _none, ...withoutDocument } = newConfiguration;
  if (newConfiguration.vctIntegrity !== true) return withoutDocument;
  const { frozenType } = storedConfiguration ?? {};
  if (!isHosted(newConfiguration, issuer)) {
    // A change without the property gets the conflict, not the advice to remove it.
    if (frozenType !== undefined) throw frozenTypeError();
    throw invalidInput('vctIntegrity', 'the service hosts no metadata of this type; remove it');
  }
  const composed = compose(newConfiguration, issuer);
  if (storedConfiguration === undefined || frozenType === undefined) return { ...withoutDocument, frozenType: composed };
  if (compose(storedConfiguration, issuer) === composed) return { ...withoutDocument, frozenType };
  throw frozenTypeError();
}

function frozenTypeError(): Failure {
  return new Failure(
    'conflict',
    'credentials contain the hash of the type metadata, which this change would invalidate; create another configuration, or set vctIntegrity to false',
  );
}

/** @throws Failure `conflict` as long as issued credentials may be checked against the document. */
export function assertNotFrozen({ frozenType }: Pick<CredentialConfiguration, 'frozenType'>): void {
  if (frozenType === undefined) return;
  throw new Failure(
    'conflict',
    'credentials contain the hash of its type metadata, which must not change; set vctIntegrity to false when no such credential is left',
  );
}

function isHosted(configuration: CredentialConfiguration, issuer: string): boolean {
  const isMdoc = configuration.config.format === 'mso_mdoc';
  return !isMdoc && vctOf(configuration, issuer) === typeAddress(configuration, issuer);
}

function compose(configuration: CredentialConfiguration, issuer: string): string {
  const { disclosureFrame: frame } = configuration;
  const parsedFrame = frame === null || frame === undefined ? undefined : parseDisclosureFrame(frame);
  return JSON.stringify(typeMetadata(configuration, issuer, parsedFrame));
}
