import { subjectLocation } from '../../domain/formats/der/subject-location.ts';
import { encodeHeader } from '../../domain/formats/jose/compact.ts';
import { parseDocumentSigner } from '../../domain/formats/mdoc/document-signer.ts';
import { DRIVING_LICENCE, findIssuingLocationProblem } from '../../domain/formats/mdoc/driving-licence.ts';
import { prepareMdoc, sealMdoc } from '../../domain/formats/mdoc/issue.ts';
import { prepareSdJwt, sealSdJwt } from '../../domain/formats/sd-jwt/issue.ts';
import { withDataUris } from '../../domain/issuance/binary-claims.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import {
  type ExpiryRange,
  expiryRanges,
  mdocValidity,
  protocolClaims,
  randomWithin,
  sdJwtTimes,
} from '../../domain/issuance/credential.ts';
import { type CopyTraits, copiesSharingTimes, repeatsSalt } from '../../domain/issuance/linkable-copies.ts';
import { mdocElements } from '../../domain/issuance/mdoc-claims.ts';
import { vctOf } from '../../domain/issuance/metadata.ts';
import { MIN_BATCH_LIFETIME_SECONDS } from '../../domain/issuance/reuse-policy.ts';
import { documentSignerChain, type KeyChain, selectKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Kms, type ToSign } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { hostedType } from '../type-metadata/hosted-type.ts';
import { binarySchemaOf, frameOf, issuanceDeniedError } from './collect-claims.ts';

/** The values in which the copies of a credential differ. */
export type CredentialInstance = {
  readonly holderKey?: PublicJwk | undefined;
  readonly status?: { readonly idx: number; readonly uri: string };
};

type CredentialInput = {
  /** Seconds; null or absent for a credential that does not expire. */
  readonly lifeTime: number | null | undefined;
  readonly tenant: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly claims: JsonObject;
  readonly chain: KeyChain;
  readonly now: Date;
};

type Prepared = { readonly toSign: ToSign; readonly traits: CopyTraits; readonly seal: (signature: Uint8Array) => string };

type Prepare = (instance: CredentialInstance, range: ExpiryRange) => Prepared;

/**
 * Caches by key chain object and not by its id: during a rotation different steps may see the old or the new key, and a credential would
 * carry a certificate that does not match its signature.
 */
const headers = new WeakMap<KeyChain, ReturnType<typeof headerOf>>();
const documentSigners = new WeakMap<KeyChain, ReturnType<typeof documentSignerOf>>();
const signerBounds = new WeakMap<KeyChain, ReadonlySet<number>>();

/** Limit of attempts to draw distinct times; with 121 seconds a hundred copies need far fewer. */
const MAX_DRAWS = 40;

/** Creates signed credentials: prepare, sign, seal. */
export class CredentialFactory extends needs({ kms: Kms, random: Random, clock: Clock }) {
  /**
   * Creates one credential per instance, with one call of the key provider.
   * @param lifeTime in seconds, if it differs from that of the configuration.
   * @returns compact SD-JWT VCs (SD-JWT VC section 2), or the IssuerSigned structures of mdocs in base64url
   *   (OpenID4VCI 1.0 appendix A.2.4), in the order of `instances`.
   */
  async create(
    tenant: TenantConfiguration,
    configuration: CredentialConfiguration,
    claims: JsonObject,
    instances: readonly CredentialInstance[],
    lifeTime = configuration.lifeTime,
  ): Promise<readonly string[]> {
    const now = this.ports.clock.now();
    const { keyChainId, config } = configuration;
    const chain = selectKeyChain(await tenant.keyChains(), 'signing', now, keyChainId ?? undefined);
    const input = { tenant, configuration, lifeTime, claims, chain, now };
    const prepare = config.format === 'mso_mdoc' ? this.#mdoc(input) : this.#sdJwt(input);
    const ranges = expiryRanges(instances.length, [randomFraction(this.ports.random), randomFraction(this.ports.random)]);
    const prepared = prepareUnlinkable(input, instances, ranges, prepare);
    const signatures = await this.ports.kms.signMany(
      signingKey(tenant.tenantId, chain.active.key),
      prepared.map(({ toSign }) => toSign),
    );
    return prepared.map(({ seal }, index) => seal(signatures[index] ?? missingSignature()));
  }

  /**
   * Checks the key before a request is consumed whose credentials are created later.
   * @throws Failure `unavailable` when its key is known not to be usable at present.
   */
  async assertReady(tenant: TenantConfiguration, { keyChainId }: CredentialConfiguration): Promise<void> {
    const now = this.ports.clock.now();
    const chain = selectKeyChain(await tenant.keyChains(), 'signing', now, keyChainId ?? undefined);
    this.ports.kms.assertReady(signingKey(tenant.tenantId, chain.active.key));
  }

  #sdJwt({ tenant, configuration, lifeTime, claims, chain, now }: CredentialInput): Prepare {
    const { random } = this.ports;
    const { issuer } = tenant;
    const header = getOrCreate(headers, chain, () => headerOf(chain));
    const frame = frameOf(tenant, configuration);
    const binary = binarySchemaOf(tenant, configuration);
    const sdJwtClaims = binary === undefined ? claims : withDataUris(claims, binary);
    const vctIntegrity = hostedType(tenant, configuration)?.integrity;
    return ({ holderKey, status }, range) => {
      const signer = header.isCertified ? chain.active : undefined;
      const times = sdJwtTimes(now, lifeTime, signer, randomWithin(range, randomFraction(random)));
      const prepared = prepareSdJwt({
        header: header.encoded,
        alwaysVisible: protocolClaims({
          issuer,
          vct: vctOf(configuration, issuer),
          times,
          ...defined({ vctIntegrity, holderKey, status }),
        }),
        claims: sdJwtClaims,
        ...defined({ frame }),
        random: (length) => random.bytes(length),
      });
      const { signingInput: toSign, salts } = prepared;
      const traits = { times: Object.values(times), salts };
      return { toSign, traits, seal: (signature) => sealSdJwt(prepared, signature) };
    };
  }

  #mdoc({ configuration, lifeTime, claims, chain, now }: CredentialInput): Prepare {
    const { random } = this.ports;
    const { config } = configuration;
    const { signer, place, validity } = getOrCreate(documentSigners, chain, () => documentSignerOf(chain));
    const claimsByNamespace = mdocElements(config, claims);
    // ISO/IEC 18013-5 section 9.3.1: readers of driving licences would reject it.
    const fault = config.docType === DRIVING_LICENCE ? findIssuingLocationProblem(place, claimsByNamespace) : undefined;
    if (fault !== undefined) throw issuanceDeniedError(`the key chain "${chain.id}" cannot sign this licence: ${fault}`);
    return ({ holderKey, status }, range) => {
      // ISO/IEC 18013-5 section 9.1.2.4: deviceKeyInfo is mandatory.
      if (holderKey === undefined) throw new Failure('invalid_proof', 'an mdoc requires a device key');
      const times = mdocValidity(now, lifeTime, validity, randomWithin(range, randomFraction(random)));
      const prepared = prepareMdoc({
        docType: config.docType ?? '',
        claimsByNamespace,
        holderKey,
        signer,
        validity: times,
        ...defined({ status }),
        random: (length) => random.bytes(length),
      });
      const { toSign, salts } = prepared;
      const traits = { times: Object.values(times).map(secondsOf), salts };
      return { toSign, traits, seal: (signature) => sealMdoc(prepared, signature) };
    };
  }
}

/**
 * Prepares the copies of a batch so that they cannot be linked (ARF 3.0 ISSU_35 and ISSU_36). Equal times are
 * drawn again.
 * @throws Failure `credential_request_denied` when copies stay alike.
 */
function prepareUnlinkable(
  { chain, configuration, lifeTime }: CredentialInput,
  instances: readonly CredentialInstance[],
  ranges: readonly ExpiryRange[],
  prepare: Prepare,
): readonly Prepared[] {
  const prepareAt = (instance: CredentialInstance, position: number) => prepare(instance, ranges[position] ?? 'whole');
  const prepared = instances.map(prepareAt);
  if (prepared.length < 2) return prepared;
  const common = getOrCreate(signerBounds, chain, () => boundsOf(chain));
  const traits = () => prepared.map((copy) => copy.traits);
  let sharingCopies = copiesSharingTimes(traits(), common);
  for (let tries = 0; sharingCopies.length > 0 && tries < MAX_DRAWS; tries++) {
    for (const position of sharingCopies) {
      const instance = instances[position];
      if (instance !== undefined) prepared[position] = prepareAt(instance, position);
    }
    sharingCopies = copiesSharingTimes(traits(), common);
  }
  // A short lifetime may have fewer seconds than the batch has copies; the configuration was created with a warning.
  const mayShare = !configuration.credentialReusePolicy && (lifeTime ?? Infinity) < MIN_BATCH_LIFETIME_SECONDS;
  if (sharingCopies.length > 0 && !mayShare) throw issuanceDeniedError('copies of a batch would share a time');
  if (repeatsSalt(traits())) throw issuanceDeniedError('copies of a batch would share a salt');
  return prepared;
}

/** The validity bounds of the certificate, which limit many credentials in the same way. */
function boundsOf(chain: KeyChain): ReadonlySet<number> {
  const [leaf] = documentSignerChain(chain);
  const validFrom = leaf === undefined ? [] : [parseDocumentSigner(leaf).notBefore];
  return new Set([...validFrom, chain.active.notAfter].map(secondsOf));
}

function secondsOf(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}

function randomFraction(random: Random): number {
  return random.bytes(4).readUInt32BE() / 2 ** 32;
}

function missingSignature(): never {
  throw new Error('The key provider returned fewer signatures than requested.');
}

function headerOf(chain: KeyChain) {
  // HAIP 1.0 section 6.1.1: the chain without the anchor
  const x5c = signingChain(chain);
  const header = { alg: algorithmIn(chain), typ: 'dc+sd-jwt', x5c };
  return { encoded: encodeHeader(header), isCertified: x5c.length > 0 };
}

function algorithmIn({ active: { key } }: KeyChain) {
  return algorithmOf(key.publicJwk) ?? key.handle.algorithm;
}

function documentSignerOf(chain: KeyChain) {
  const certificates = documentSignerChain(chain);
  const { notBefore } = parseDocumentSigner(certificates[0] ?? '');
  return {
    signer: { algorithm: algorithmIn(chain), chain: certificates },
    place: subjectLocation(certificates[0] ?? ''),
    validity: { notBefore, notAfter: chain.active.notAfter },
  };
}
