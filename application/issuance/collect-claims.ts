import { isDeepStrictEqual } from 'node:util';
import { subjectLocation } from '../../domain/formats/der/subject-location.ts';
import { DRIVING_LICENCE, findIssuingLocationProblem } from '../../domain/formats/mdoc/driving-licence.ts';
import { type Frame, parseDisclosureFrame } from '../../domain/formats/sd-jwt/disclosure-frame.ts';
import { findSdJwtClaimProblems } from '../../domain/formats/sd-jwt/issue.ts';
import { findBinaryProblems, hasBinaryClaims, withDataUris } from '../../domain/issuance/binary-claims.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { findClaimTypeProblems } from '../../domain/issuance/element-types.ts';
import { padFrame } from '../../domain/issuance/frame-padding.ts';
import { findMissingClaims } from '../../domain/issuance/mandatory-claims.ts';
import { findMdocProblems, findMdocTypeProblems, mdocElements, staticElements } from '../../domain/issuance/mdoc-claims.ts';
import { findMissingSubjectClaims } from '../../domain/issuance/subject-claims.ts';
import { findTypeRuleViolations, typeRules } from '../../domain/issuance/type-rules.ts';
import { documentSignerChain, findKeyChain } from '../../domain/keys/key-chain.ts';
import type { ClaimsSource, IssuanceRequest } from '../../domain/sessions/session.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Clock } from '../ports/clock.ts';
import type { SchemaFault, SchemaValidator } from '../ports/schema-validator.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/**
 * The source of the claims of a credential: inline in the offer, a webhook named in the offer, the webhook of the configuration, or
 * its static claims; the first that exists. Sources are not merged.
 */
export function claimsSourceOf(request: IssuanceRequest, configuration: CredentialConfiguration): ClaimsSource {
  const offeredSource = Object.hasOwn(request.credentialClaims, configuration.id) ? request.credentialClaims[configuration.id] : undefined;
  if (offeredSource !== undefined) return offeredSource;
  return configuredSource(configuration);
}

/**
 * The source of the claims if the offer names none. Deferred decisions, the login of the user and presented claims reach a
 * credential through a webhook only.
 */
export function configuredSource({ claimsWebhook, claims, config }: CredentialConfiguration): ClaimsSource {
  if (claimsWebhook !== null && claimsWebhook !== undefined) return { type: 'webhook', webhook: claimsWebhook };
  return { type: 'inline', claims: claims ?? staticElements(config) ?? {} };
}

type Ports = { readonly schemaValidator: SchemaValidator; readonly clock: Clock };

/** Claims, and the configuration to issue them with. */
export type Issuable = {
  readonly tenant: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly claims: JsonObject;
};

/**
 * Checks types when claims arrive. Those of the configuration were checked when it was written, and a
 * configuration that an earlier version stored remains usable.
 */
function findTypeProblems({ configuration, claims }: Issuable): readonly SchemaFault[] {
  const source = configuredSource(configuration);
  if (source.type === 'inline' && isDeepStrictEqual(source.claims, claims)) return [];
  const { config, vct } = configuration;
  return config.format === 'mso_mdoc' ? findMdocTypeProblems(config, claims) : findClaimTypeProblems(vct, claims);
}

/**
 * Reasons why a configuration cannot issue the claims: its schema, its format, its promised claims. Reserved names depend on the
 * format: an mdoc has none, since its elements are separate from protocol data.
 */
export async function findClaimProblems({ schemaValidator, clock }: Ports, issuable: Issuable): Promise<readonly SchemaFault[]> {
  const faults = findSchemaProblems(schemaValidator, issuable);
  return faults.length > 0 ? faults : findIssuingProblems(clock, issuable);
}

async function findIssuingProblems(clock: Clock, issuable: Issuable): Promise<readonly SchemaFault[]> {
  const faults = findFormatProblems(issuable);
  if (faults.length > 0) return faults;
  const message = await findLicencePlaceProblem(clock, issuable);
  return message === undefined ? [] : [{ path: '', message }];
}

function findSchemaProblems(validator: SchemaValidator, { tenant, configuration, claims }: Issuable): readonly SchemaFault[] {
  const { id, schema } = configuration;
  if (schema === null || schema === undefined) return [];
  return tenant.deriveOf(configuration, `schema/${id}`, () => validator.compile(schema))(claims);
}

function findFormatProblems({ tenant, configuration, claims }: Issuable): readonly SchemaFault[] {
  const { config } = configuration;
  const isMdoc = config.format === 'mso_mdoc';
  const frame = frameOf(tenant, configuration);
  const binary = binarySchemaOf(tenant, configuration);
  const faults = isMdoc ? findMdocProblems(config, claims) : findSdJwtPayloadProblems(claims, frame, binary);
  if (faults.length > 0) return faults;
  const wrongTypes = findTypeProblems({ tenant, configuration, claims });
  if (wrongTypes.length > 0) return wrongTypes;
  const claimsByName = isMdoc ? mdocElements(config, claims) : claims;
  const missingClaims = [
    ...findMissingClaims(config, claimsByName),
    ...findMissingSubjectClaims(claimsByName, configuration.subjectClaims),
  ];
  return isMdoc ? missingClaims : [...missingClaims, ...findTypeRuleViolations(typeRules(configuration.vct), claims, frame)];
}

/** Claims are checked in the form in which they are issued: data URIs are longer than the base64 in the input. */
function findSdJwtPayloadProblems(claims: JsonObject, frame: Frame | undefined, binary: JsonObject | undefined): readonly SchemaFault[] {
  if (binary === undefined) return findSdJwtClaimProblems(claims, frame);
  const faults = findBinaryProblems(claims, binary);
  return faults.length > 0 ? faults : findSdJwtClaimProblems(withDataUris(claims, binary), frame);
}

export function frameOf(tenant: TenantConfiguration, configuration: CredentialConfiguration): Frame | undefined {
  const { id, disclosureFrame, schema } = configuration;
  if (disclosureFrame === null || disclosureFrame === undefined) return undefined;
  return tenant.deriveOf(configuration, `frame/${id}`, () => {
    const frame = parseDisclosureFrame(disclosureFrame);
    return schema === null || schema === undefined ? frame : padFrame(frame, schema);
  });
}

/** The schema of an SD-JWT VC with binary claims; undefined without any. */
export function binarySchemaOf(tenant: TenantConfiguration, configuration: CredentialConfiguration): JsonObject | undefined {
  const { id, config, schema } = configuration;
  if (schema === null || schema === undefined || config.format === 'mso_mdoc') return undefined;
  return tenant.deriveOf(configuration, `binary/${id}`, () => hasBinaryClaims(schema)) ? schema : undefined;
}

/**
 * Checks that claims may be signed: they match schema and format and override no protocol claim.
 * @throws Failure `credential_request_denied`; its cause contains the problem for the operator.
 */
export async function assertIssuable({ schemaValidator, clock }: Ports, issuable: Issuable): Promise<void> {
  const [schemaFault] = findSchemaProblems(schemaValidator, issuable);
  if (schemaFault !== undefined)
    throw issuanceDeniedError(
      `the claims do not match the schema: ${schemaFault.path || 'the document'} ${schemaFault.message}`,
      'the claims do not match the schema; the failure of the session names the path',
    );
  const [fault] = await findIssuingProblems(clock, issuable);
  if (fault !== undefined)
    throw issuanceDeniedError(
      `the claims cannot be issued: ${fault.path || 'the document'} ${fault.message}`,
      'the claims cannot be issued; the failure of the session names the path',
    );
}

/**
 * The wallet gets an unspecific error, the operator the reason.
 * @param logged replaces a reason that contains claim names.
 */
export function issuanceDeniedError(reason: string, logged = reason): Failure {
  return new Failure('credential_request_denied', 'the issuer cannot issue this credential', {
    cause: new OperatorReason(logged, { cause: new Error(reason) }),
  });
}

/**
 * Checks that a driving licence can be signed by the key chain of its configuration: readers reject a signer of another
 * country or state (ISO/IEC 18013-5 section 9.3.1).
 * @returns the problem, without claim values.
 */
async function findLicencePlaceProblem(clock: Clock, { tenant, configuration, claims }: Issuable): Promise<string | undefined> {
  const { config, keyChainId } = configuration;
  if (config.format !== 'mso_mdoc' || config.docType !== DRIVING_LICENCE) return undefined;
  // Without a usable key chain no credential is issued, and the signer reports it.
  const chain = findKeyChain(await tenant.keyChains(), 'signing', clock.now(), keyChainId ?? undefined);
  const [certificate] = chain === undefined ? [] : documentSignerChain(chain);
  if (chain === undefined || certificate === undefined) return undefined;
  const fault = findIssuingLocationProblem(subjectLocation(certificate), mdocElements(config, claims));
  return fault && `the key chain "${chain.id}" cannot sign this licence: ${fault}`;
}
