import { isDeepStrictEqual } from 'node:util';
import { subjectPlace } from '../../domain/formats/der/place.ts';
import { DRIVING_LICENCE, findIssuingPlaceProblem } from '../../domain/formats/mdoc/driving-licence.ts';
import { type Frame, parseDisclosureFrame } from '../../domain/formats/sd-jwt/disclosure-frame.ts';
import { findSdJwtClaimProblems } from '../../domain/formats/sd-jwt/issue.ts';
import { findBinaryProblems, hasBinaryClaims, withDataUris } from '../../domain/issuance/binary-claims.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { findClaimTypeProblems } from '../../domain/issuance/element-types.ts';
import { paddedFrame } from '../../domain/issuance/frame-padding.ts';
import { missingClaims } from '../../domain/issuance/mandatory-claims.ts';
import { findMdocProblems, findMdocTypeProblems, mdocElements, staticElements } from '../../domain/issuance/mdoc-claims.ts';
import { missingSubjects } from '../../domain/issuance/subject-claims.ts';
import { brokenRules, typeRules } from '../../domain/issuance/type-rules.ts';
import { documentSignerChain, findKeyChain } from '../../domain/keys/key-chain.ts';
import type { ClaimsSource, IssuanceRequest } from '../../domain/sessions/session.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Clock } from '../ports/clock.ts';
import type { SchemaFault, SchemaValidator } from '../ports/schema-validator.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/**
 * Where the claims of a credential come from: inline in the offer, a webhook named in the offer, the webhook of
 * the configuration, or what it holds itself; the first that exists, whole. Nothing is merged.
 */
export function claimsSource(request: IssuanceRequest, configuration: CredentialConfiguration): ClaimsSource {
  const named = Object.hasOwn(request.credentialClaims, configuration.id) ? request.credentialClaims[configuration.id] : undefined;
  if (named !== undefined) return named;
  return ownSource(configuration);
}

/**
 * Where the claims come from when the offer says nothing. What a backend decides later, what users log in with and what
 * they present reaches a credential through a webhook only.
 */
export function ownSource({ claimsWebhook, claims, config }: CredentialConfiguration): ClaimsSource {
  if (claimsWebhook !== null && claimsWebhook !== undefined) return { type: 'webhook', webhook: claimsWebhook };
  return { type: 'inline', claims: claims ?? staticElements(config) ?? {} };
}

type Ports = { readonly schemaValidator: SchemaValidator; readonly clock: Clock };

/** Claims, and what they are to be issued by. */
export type Issuable = {
  readonly configured: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly claims: JsonObject;
};

/**
 * Types of elements are checked when claims arrive. Those of the configuration were checked when it was written, and a
 * configuration that an earlier release stored goes on.
 */
function findTypeProblems({ configuration, claims }: Issuable): readonly SchemaFault[] {
  const source = ownSource(configuration);
  if (source.type === 'inline' && isDeepStrictEqual(source.claims, claims)) return [];
  const { config, vct } = configuration;
  return config.format === 'mso_mdoc' ? findMdocTypeProblems(config, claims) : findClaimTypeProblems(vct, claims);
}

/**
 * What keeps claims from being issued by a configuration: its schema, its format, what it promises. The names that the
 * issuer sets itself are those of the format: an mdoc has none, its elements stand apart from what the protocol says.
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

function findSchemaProblems(validator: SchemaValidator, { configured, configuration, claims }: Issuable): readonly SchemaFault[] {
  const { id, schema } = configuration;
  if (schema === null || schema === undefined) return [];
  return configured.deriveOf(configuration, `schema/${id}`, () => validator.compile(schema))(claims);
}

function findFormatProblems({ configured, configuration, claims }: Issuable): readonly SchemaFault[] {
  const { config } = configuration;
  const isMdoc = config.format === 'mso_mdoc';
  const frame = frameOf(configured, configuration);
  const binary = binarySchemaOf(configured, configuration);
  const faults = isMdoc ? findMdocProblems(config, claims) : findSdJwtPayloadProblems(claims, frame, binary);
  if (faults.length > 0) return faults;
  const wrongTypes = findTypeProblems({ configured, configuration, claims });
  if (wrongTypes.length > 0) return wrongTypes;
  const named = isMdoc ? mdocElements(config, claims) : claims;
  const missing = [...missingClaims(config, named), ...missingSubjects(named, configuration.subjectClaims)];
  return isMdoc ? missing : [...missing, ...brokenRules(typeRules(configuration.vct), claims, frame)];
}

/** Claims are judged in the form in which they are issued: data URIs are longer than the base64 that they are made of. */
function findSdJwtPayloadProblems(claims: JsonObject, frame: Frame | undefined, binary: JsonObject | undefined): readonly SchemaFault[] {
  if (binary === undefined) return findSdJwtClaimProblems(claims, frame);
  const faults = findBinaryProblems(claims, binary);
  return faults.length > 0 ? faults : findSdJwtClaimProblems(withDataUris(claims, binary), frame);
}

/** The frame of a configuration; undefined when nothing is selectively disclosable. */
export function frameOf(configured: TenantConfiguration, configuration: CredentialConfiguration): Frame | undefined {
  const { id, disclosureFrame, schema } = configuration;
  if (disclosureFrame === null || disclosureFrame === undefined) return undefined;
  return configured.deriveOf(configuration, `frame/${id}`, () => {
    const frame = parseDisclosureFrame(disclosureFrame);
    return schema === null || schema === undefined ? frame : paddedFrame(frame, schema);
  });
}

/** The schema of an SD-JWT VC with claims that are bytes; undefined where none is. */
export function binarySchemaOf(configured: TenantConfiguration, configuration: CredentialConfiguration): JsonObject | undefined {
  const { id, config, schema } = configuration;
  if (schema === null || schema === undefined || config.format === 'mso_mdoc') return undefined;
  return configured.deriveOf(configuration, `binary/${id}`, () => hasBinaryClaims(schema)) ? schema : undefined;
}

/**
 * Claims that may be signed: they fit schema and format and override nothing of the protocol.
 * @throws Failure `credential_request_denied`; its cause tells the operator where the fault is.
 */
export async function assertIssuable({ schemaValidator, clock }: Ports, issuable: Issuable): Promise<void> {
  const [unfit] = findSchemaProblems(schemaValidator, issuable);
  if (unfit !== undefined)
    throw denied(
      `the claims do not fit the schema: ${unfit.path || 'the document'} ${unfit.message}`,
      'the claims do not fit the schema; failure of the session says where',
    );
  const [fault] = await findIssuingProblems(clock, issuable);
  if (fault !== undefined)
    throw denied(
      `the claims cannot be issued: ${fault.path || 'the document'} ${fault.message}`,
      'the claims cannot be issued; failure of the session says where',
    );
}

/**
 * The wallet learns that it gets nothing, the operator why.
 * @param logged where the reason has names that come with the claims.
 */
export function denied(reason: string, logged = reason): Failure {
  return new Failure('credential_request_denied', 'the issuer cannot issue this credential', {
    cause: new OperatorReason(logged, { cause: new Error(reason) }),
  });
}

/**
 * What keeps a driving licence from being signed by the key chain of its configuration: readers refuse one of another
 * country or state than its signer (ISO/IEC 18013-5 section 9.3.1).
 * @returns what is wrong, without the values of claims.
 */
async function findLicencePlaceProblem(clock: Clock, { configured, configuration, claims }: Issuable): Promise<string | undefined> {
  const { config, keyChainId } = configuration;
  if (config.format !== 'mso_mdoc' || config.docType !== DRIVING_LICENCE) return undefined;
  // Without a usable key chain no credential is issued, and the signer reports it.
  const chain = findKeyChain(await configured.keyChains(), 'signing', clock.now(), keyChainId ?? undefined);
  const [certificate] = chain === undefined ? [] : documentSignerChain(chain);
  if (chain === undefined || certificate === undefined) return undefined;
  const fault = findIssuingPlaceProblem(subjectPlace(certificate), mdocElements(config, claims));
  return fault && `the key chain "${chain.id}" cannot sign this licence: ${fault}`;
}
