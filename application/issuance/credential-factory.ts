import { readDocumentSigner } from '../../domain/formats/mdoc/document-signer.ts';
import { prepareMdoc, sealMdoc } from '../../domain/formats/mdoc/issue.ts';
import { prepareSdJwt, sealSdJwt } from '../../domain/formats/sd-jwt/issue.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { mdocValidity, protocolClaims, sdJwtTimes } from '../../domain/issuance/credential.ts';
import { mdocElements } from '../../domain/issuance/mdoc-claims.ts';
import { vctOf } from '../../domain/issuance/metadata.ts';
import {
  documentSignerChain,
  type KeyChain,
  pickKeyChain,
  signingChain,
} from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { frameOf, hostedType } from './collect-claims.ts';

/** What makes one copy of a credential differ from the others. */
export type CredentialInstance = {
  readonly holderKey?: PublicJwk | undefined;
  readonly status?: { readonly idx: number; readonly uri: string };
};

type Making = {
  readonly configured: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly claims: JsonObject;
  readonly instance: CredentialInstance;
  readonly chain: KeyChain;
  readonly now: Date;
};

/** Makes signed credentials: prepare, sign, seal. */
export class CredentialFactory extends needs({ kms: Kms, random: Random, clock: Clock }) {
  /**
   * @returns a compact SD-JWT VC (SD-JWT VC section 2), or the IssuerSigned structure of an mdoc in base64url
   *   (OpenID4VCI 1.0 appendix A.2.4).
   */
  async make(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    claims: JsonObject,
    instance: CredentialInstance,
  ): Promise<string> {
    const now = this.ports.clock.now();
    const { keyChainId, config } = configuration;
    const chain = pickKeyChain(await configured.keyChains(), 'signing', now, keyChainId ?? undefined);
    const making = { configured, configuration, claims, instance, chain, now };
    return config.format === 'mso_mdoc' ? this.#mdoc(making) : this.#sdJwt(making);
  }

  async #sdJwt({ configured, configuration, claims, instance, chain, now }: Making): Promise<string> {
    const { kms, random } = this.ports;
    const { issuer } = configured;
    const header = configured.derive(`credential-header/${chain.id}`, () => ({
      alg: algorithmIn(chain),
      typ: 'dc+sd-jwt',
      // HAIP 1.0 section 6.1.1: the chain without the anchor
      x5c: signingChain(chain),
    }));
    const frame = frameOf(configured, configuration);
    const vctIntegrity = hostedType(configured, configuration)?.integrity;
    const prepared = prepareSdJwt({
      header,
      alwaysVisible: protocolClaims({
        issuer,
        vct: vctOf(configuration, issuer),
        times: sdJwtTimes(now, configuration.lifeTime, header.x5c.length > 0 ? chain.active : undefined),
        ...defined({ vctIntegrity, holderKey: instance.holderKey, status: instance.status }),
      }),
      claims,
      ...defined({ frame }),
      randomBytes: (length) => random.bytes(length),
    });
    const signature = await kms.sign(
      signingKey(configured.tenantId, chain.active.key),
      prepared.signingInput,
    );
    return sealSdJwt(prepared, signature);
  }

  async #mdoc({ configured, configuration, claims, instance, chain, now }: Making): Promise<string> {
    const { kms, random } = this.ports;
    const { config, lifeTime } = configuration;
    const { holderKey, status } = instance;
    // ISO/IEC 18013-5 section 9.1.2.4: deviceKeyInfo is mandatory.
    if (holderKey === undefined) throw new Failure('invalid_proof', 'an mdoc needs a key of the device');
    const { signer, validity } = configured.derive(`document-signer/${chain.id}`, () =>
      documentSignerOf(chain),
    );
    const prepared = prepareMdoc({
      docType: config.docType ?? '',
      claimsByNamespace: mdocElements(config, claims),
      holderKey,
      signer,
      validity: mdocValidity(now, lifeTime, validity),
      ...defined({ status }),
      randomBytes: (length) => random.bytes(length),
    });
    const signature = await kms.sign(signingKey(configured.tenantId, chain.active.key), prepared.toSign);
    return sealMdoc(prepared, signature);
  }
}

function algorithmIn({ active: { key } }: KeyChain) {
  return algorithmOf(key.publicJwk) ?? key.handle.algorithm;
}

function documentSignerOf(chain: KeyChain) {
  const certificates = documentSignerChain(chain);
  const { notBefore } = readDocumentSigner(certificates[0] ?? '');
  return {
    signer: { algorithm: algorithmIn(chain), chain: certificates },
    validity: { notBefore, notAfter: chain.active.notAfter },
  };
}
