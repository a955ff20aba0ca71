import { subjectPlace } from '../../domain/formats/der/place.ts';
import { encodeHeader } from '../../domain/formats/jose/compact.ts';
import { parseDocumentSigner } from '../../domain/formats/mdoc/document-signer.ts';
import { DRIVING_LICENCE, findIssuingPlaceProblem } from '../../domain/formats/mdoc/driving-licence.ts';
import { prepareMdoc, sealMdoc } from '../../domain/formats/mdoc/issue.ts';
import { prepareSdJwt, sealSdJwt } from '../../domain/formats/sd-jwt/issue.ts';
import { withDataUris } from '../../domain/issuance/binary-claims.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { drawnWithin, type ExpiryRange, expiryRanges, mdocValidity, protocolClaims, sdJwtTimes } from '../../domain/issuance/credential.ts';
import { type CopyTraits, repeatsSalt, sharingTimes } from '../../domain/issuance/linkable-copies.ts';
import { mdocElements } from '../../domain/issuance/mdoc-claims.ts';
import { vctOf } from '../../domain/issuance/metadata.ts';
import { MIN_BATCH_LIFETIME_SECONDS } from '../../domain/issuance/reuse-policy.ts';
import { documentSignerChain, type KeyChain, pickKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Kms, type ToSign } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { hostedType } from '../type-metadata/hosted-type.ts';
import { binarySchemaOf, denied, frameOf } from './collect-claims.ts';

/** What makes one copy of a credential differ from the others. */
export type CredentialInstance = {
  readonly holderKey?: PublicJwk | undefined;
  readonly status?: { readonly idx: number; readonly uri: string };
};

type Making = {
  /** Seconds; null or absent for a credential without an end. */
  readonly lifeTime: number | null | undefined;
  readonly configured: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly claims: JsonObject;
  readonly chain: KeyChain;
  readonly now: Date;
};

/** A credential up to its signature. */
type Prepared = { readonly toSign: ToSign; readonly traits: CopyTraits; readonly seal: (signature: Uint8Array) => string };

type Prepare = (instance: CredentialInstance, range: ExpiryRange) => Prepared;

/**
 * What follows from a key chain, kept by itself and not by its id: of a chain that is being rotated one step may see the key of now
 * and another the certificate of a moment ago, and a credential would carry a certificate that its signature is not by.
 */
const headers = new WeakMap<KeyChain, ReturnType<typeof headerOf>>();
const documentSigners = new WeakMap<KeyChain, ReturnType<typeof documentSignerOf>>();
const signerBounds = new WeakMap<KeyChain, ReadonlySet<number>>();

/** Times are drawn anew so often; of 121 seconds, a hundred copies find one each well before. */
const MAX_DRAWS = 40;

/** Makes signed credentials: prepare, sign, seal. */
export class CredentialFactory extends needs({ kms: Kms, random: Random, clock: Clock }) {
  /**
   * Makes one credential per instance. The key provider is asked once for all of them.
   * @param lifeTime in seconds, where it is not that of the configuration.
   * @returns compact SD-JWT VCs (SD-JWT VC section 2), or the IssuerSigned structures of mdocs in base64url
   *   (OpenID4VCI 1.0 appendix A.2.4), in the order of `instances`.
   */
  async make(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    claims: JsonObject,
    instances: readonly CredentialInstance[],
    lifeTime = configuration.lifeTime,
  ): Promise<readonly string[]> {
    const now = this.ports.clock.now();
    const { keyChainId, config } = configuration;
    const chain = pickKeyChain(await configured.keyChains(), 'signing', now, keyChainId ?? undefined);
    const making = { configured, configuration, lifeTime, claims, chain, now };
    const prepare = config.format === 'mso_mdoc' ? this.#mdoc(making) : this.#sdJwt(making);
    const ranges = expiryRanges(instances.length, [drawn(this.ports.random), drawn(this.ports.random)]);
    const prepared = unlinkable(making, instances, ranges, prepare);
    const signatures = await this.ports.kms.signMany(
      signingKey(configured.tenantId, chain.active.key),
      prepared.map(({ toSign }) => toSign),
    );
    return prepared.map(({ seal }, index) => seal(signatures[index] ?? missingSignature()));
  }

  /**
   * For a request that is spent before its credentials are made.
   * @throws Failure `unavailable` when its key is known not to be usable at present.
   */
  async assertReady(configured: TenantConfiguration, { keyChainId }: CredentialConfiguration): Promise<void> {
    const now = this.ports.clock.now();
    const chain = pickKeyChain(await configured.keyChains(), 'signing', now, keyChainId ?? undefined);
    this.ports.kms.assertReady(signingKey(configured.tenantId, chain.active.key));
  }

  #sdJwt({ configured, configuration, lifeTime, claims, chain, now }: Making): Prepare {
    const { random } = this.ports;
    const { issuer } = configured;
    const header = madeOnce(headers, chain, () => headerOf(chain));
    const frame = frameOf(configured, configuration);
    const binary = binarySchemaOf(configured, configuration);
    const shown = binary === undefined ? claims : withDataUris(claims, binary);
    const vctIntegrity = hostedType(configured, configuration)?.integrity;
    return ({ holderKey, status }, range) => {
      const signer = header.isCertified ? chain.active : undefined;
      const times = sdJwtTimes(now, lifeTime, signer, drawnWithin(range, drawn(random)));
      const prepared = prepareSdJwt({
        header: header.encoded,
        alwaysVisible: protocolClaims({
          issuer,
          vct: vctOf(configuration, issuer),
          times,
          ...defined({ vctIntegrity, holderKey, status }),
        }),
        claims: shown,
        ...defined({ frame }),
        random: (length) => random.bytes(length),
      });
      const { signingInput: toSign, salts } = prepared;
      const traits = { times: Object.values(times), salts };
      return { toSign, traits, seal: (signature) => sealSdJwt(prepared, signature) };
    };
  }

  #mdoc({ configuration, lifeTime, claims, chain, now }: Making): Prepare {
    const { random } = this.ports;
    const { config } = configuration;
    const { signer, place, validity } = madeOnce(documentSigners, chain, () => documentSignerOf(chain));
    const claimsByNamespace = mdocElements(config, claims);
    // ISO/IEC 18013-5 section 9.3.1: readers of driving licences would refuse it.
    const fault = config.docType === DRIVING_LICENCE ? findIssuingPlaceProblem(place, claimsByNamespace) : undefined;
    if (fault !== undefined) throw denied(`the key chain "${chain.id}" cannot sign this licence: ${fault}`);
    return ({ holderKey, status }, range) => {
      // ISO/IEC 18013-5 section 9.1.2.4: deviceKeyInfo is mandatory.
      if (holderKey === undefined) throw new Failure('invalid_proof', 'an mdoc needs a key of the device');
      const times = mdocValidity(now, lifeTime, validity, drawnWithin(range, drawn(random)));
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
 * The copies of a batch, so that nobody can tell by one what others belong to it (ARF 3.0 ISSU_35 and ISSU_36). Times that
 * are drawn for each copy are drawn again where two came out the same.
 * @throws Failure `credential_request_denied` when copies stay alike.
 */
function unlinkable(
  { chain, configuration, lifeTime }: Making,
  instances: readonly CredentialInstance[],
  ranges: readonly ExpiryRange[],
  prepare: Prepare,
): readonly Prepared[] {
  const prepareAt = (instance: CredentialInstance, position: number) => prepare(instance, ranges[position] ?? 'whole');
  const prepared = instances.map(prepareAt);
  if (prepared.length < 2) return prepared;
  const common = madeOnce(signerBounds, chain, () => boundsOf(chain));
  const traits = () => prepared.map((copy) => copy.traits);
  let sharing = sharingTimes(traits(), common);
  for (let tries = 0; sharing.length > 0 && tries < MAX_DRAWS; tries++) {
    for (const position of sharing) {
      const instance = instances[position];
      if (instance !== undefined) prepared[position] = prepareAt(instance, position);
    }
    sharing = sharingTimes(traits(), common);
  }
  // What lives for minutes has fewer seconds to end at than some batches have copies; it is warned of.
  const mayShare = !configuration.credentialReusePolicy && (lifeTime ?? Infinity) < MIN_BATCH_LIFETIME_SECONDS;
  if (sharing.length > 0 && !mayShare) throw denied('copies of a batch would share a time');
  if (repeatsSalt(traits())) throw denied('copies of a batch would share a salt');
  return prepared;
}

/** The ends of the certificate, which all credentials of its first and last hour share. */
function boundsOf(chain: KeyChain): ReadonlySet<number> {
  const [leaf] = documentSignerChain(chain);
  const begins = leaf === undefined ? [] : [parseDocumentSigner(leaf).notBefore];
  return new Set([...begins, chain.active.notAfter].map(secondsOf));
}

function secondsOf(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}

/** @returns from 0 to below 1. */
function drawn(random: Random): number {
  return random.bytes(4).readUInt32BE() / 2 ** 32;
}

function missingSignature(): never {
  throw new Error('The key provider made fewer signatures than it was asked for.');
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
    place: subjectPlace(certificates[0] ?? ''),
    validity: { notBefore, notAfter: chain.active.notAfter },
  };
}
