import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { packEntries } from '../../domain/status-lists/bits.ts';
import { compressList } from './compress-list.ts';
import { type HolderKey, makeJwt, newKey, now, type Overrides } from './raw-wallet.ts';
import { type CertifiedKey, certify, pem } from './test-certificates.ts';
import { type ListedEntity, type ListOptions, trustList } from './trust-list.ts';

/** Applies overrides; undefined removes a property. */
const withOverrides = (base: Record<string, unknown>, changes: Record<string, unknown> = {}) =>
  Object.fromEntries(Object.entries({ ...base, ...changes }).filter(([, value]) => value !== undefined));

export type AttestationOptions = Overrides & { readonly clientId?: string; readonly signer?: CertifiedKey };

export type PopOptions = Overrides & { readonly challenge?: string };

type ProviderCertificates = Pick<WalletProvider, 'root' | 'signer' | 'revocationRoot' | 'revocationSigner' | 'operator'>;

/** All providers share their keys. */
let providerCertificates: Promise<ProviderCertificates> | undefined;

async function certifyAll(): Promise<ProviderCertificates> {
  const root = await certify({ name: 'Wallet CA', ca: true });
  const revocationRoot = await certify({ name: 'Wallet Revocation CA', ca: true });
  return {
    root,
    signer: await certify({ name: 'Wallet Provider', by: root }),
    revocationRoot,
    revocationSigner: await certify({ name: 'Wallet Revocation', by: revocationRoot }),
    operator: await certify({ name: 'Scheme Operator' }),
  };
}

/**
 * A wallet provider and the operator of its trust list: a CA for its signer, another CA for revocation, and the operator's
 * self-signed certificate.
 */
export class WalletProvider {
  readonly root: CertifiedKey;
  readonly signer: CertifiedKey;
  readonly revocationRoot: CertifiedKey;
  readonly revocationSigner: CertifiedKey;
  readonly operator: CertifiedKey;
  readonly clientId = 'https://wallet.example';
  /** Address of the server; unreachable until `listen`. */
  url = 'https://wallet-provider.example';
  /** The published list; undefined answers 503. */
  published: string | undefined;
  /** Status values by index of the provider's status list. */
  readonly statuses = new Map<number, number>();
  /** Number of entries of the list, which may grow. */
  capacity = 100;
  /** Signer of the status list. */
  statusSigner: readonly CertifiedKey[];
  /** Requested paths. */
  readonly calls: string[] = [];
  readonly #seconds: () => number;
  #close: () => Promise<void> = async () => {};

  private constructor(providerCertificates: ProviderCertificates, seconds: () => number) {
    this.root = providerCertificates.root;
    this.signer = providerCertificates.signer;
    this.revocationRoot = providerCertificates.revocationRoot;
    this.revocationSigner = providerCertificates.revocationSigner;
    this.operator = providerCertificates.operator;
    this.statusSigner = [providerCertificates.revocationSigner];
    this.#seconds = seconds;
    this.published = this.list();
  }

  /** Creates a provider without a server. @param seconds the present time, for tests with a simulated clock. */
  static async make(seconds: () => number = now): Promise<WalletProvider> {
    providerCertificates ??= certifyAll();
    return new WalletProvider(await providerCertificates, seconds);
  }

  /** Creates a provider with a server on this machine. */
  static async start(): Promise<WalletProvider> {
    const provider = await WalletProvider.make();
    await provider.listen();
    return provider;
  }

  async listen(): Promise<void> {
    const server = createServer((request, response) => {
      const path = request.url ?? '';
      this.calls.push(path);
      const { status, type, body } = this.answer(path);
      response.writeHead(status, { 'Content-Type': type }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#close = () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** Serves a response at a path. */
  answer(path: string): { readonly status: number; readonly type: string; readonly body: string } {
    if (path === '/lote' && this.published !== undefined) {
      return { status: 200, type: 'application/jwt', body: this.published };
    }
    if (path === '/status/1') {
      return { status: 200, type: 'application/statuslist+jwt', body: this.statusList() };
    }
    return { status: path === '/lote' ? 503 : 404, type: 'text/plain', body: 'nothing here' };
  }

  /** Properties of an issuance configuration that trusts this provider. */
  configuration(): Record<string, unknown> {
    return {
      walletAttestationRequired: true,
      walletProviderTrustLists: [`${this.url}/lote`],
      walletProviderTrustListCertificates: [pem(this.operator)],
    };
  }

  /** An issuance configuration with registered redirect URIs of its wallets. */
  registered(redirect_uris: readonly string[], by = this.root): Record<string, unknown> {
    const walletProviders = [{ certificates: [pem(by)], client_ids: [this.clientId], redirect_uris }];
    return { ...this.configuration(), walletProviders };
  }

  /** The trust list of an operator with both services of this provider. */
  list(options: ListOptions = {}): string {
    return trustList({ entities: [this.entity()], signer: this.operator, ...options }, this.#seconds());
  }

  entity(): ListedEntity {
    const issuance = { type: 'WalletSolution/Issuance', certificates: [this.root.certificate] };
    const revocation = { type: 'WalletSolution/Revocation', certificates: [this.revocationRoot.certificate] };
    return { name: 'Wallet Provider', services: [issuance, revocation] };
  }

  /** The attestation of a wallet instance with the key `instance`. */
  attestation(instance: HolderKey, options: AttestationOptions = {}): string {
    const { clientId = this.clientId, signer = this.signer, header, payload } = options;
    const seconds = this.#seconds();
    const claims = {
      iss: 'https://wallet-provider.example',
      sub: clientId,
      iat: seconds - 60,
      exp: seconds + 3600,
      cnf: { jwk: instance.jwk },
      wallet_name: 'Example Wallet',
    };
    const typ = 'oauth-client-attestation+jwt';
    return makeJwt(signer, withOverrides({ alg: 'ES256', typ, x5c: [signer.certificate] }, header), withOverrides(claims, payload));
  }

  /** The proof of possession of a wallet instance. @param audience issuer of the authorization server. */
  pop(instance: HolderKey, audience: string, options: PopOptions = {}): string {
    const { challenge, header, payload } = options;
    const claims = { iss: this.clientId, aud: audience, jti: randomUUID(), iat: this.#seconds(), challenge };
    const typ = 'oauth-client-attestation-pop+jwt';
    return makeJwt(instance, withOverrides({ alg: 'ES256', typ }, header), withOverrides(claims, payload));
  }

  /** Both header fields of a request. */
  headers(
    instance: HolderKey,
    audience: string,
    challenge: string | undefined,
    options: { readonly attestation?: AttestationOptions; readonly pop?: Overrides } = {},
  ): Record<string, string> {
    return {
      'OAuth-Client-Attestation': this.attestation(instance, options.attestation),
      'OAuth-Client-Attestation-PoP': this.pop(instance, audience, { ...options.pop, ...(challenge === undefined ? {} : { challenge }) }),
    };
  }

  /** OpenID4VCI 1.0 appendix D.1: attests the key storage of a wallet. */
  keyAttestation(
    keys: readonly HolderKey[] = [newKey()],
    options: Overrides & { readonly nonce?: string; readonly signer?: CertifiedKey } = {},
  ): string {
    const { nonce, signer = this.signer, header, payload } = options;
    const seconds = this.#seconds();
    const claims = {
      iss: 'https://wallet-provider.example',
      iat: seconds - 60,
      exp: seconds + 3600,
      attested_keys: keys.map(({ jwk }) => jwk),
      key_storage: ['iso_18045_high'],
      user_authentication: ['iso_18045_high'],
      nonce,
    };
    const typ = 'key-attestation+jwt';
    return makeJwt(signer, withOverrides({ alg: 'ES256', typ, x5c: [signer.certificate] }, header), withOverrides(claims, payload));
  }

  /** The `status` claim of an attestation with this index in the provider's status list. */
  status(index: number): Record<string, unknown> {
    return { status_list: { idx: index, uri: `${this.url}/status/1` } };
  }

  statusList(): string {
    const [signer] = this.statusSigner;
    if (signer === undefined) throw new Error('the status list has no signer');
    const entries = [...this.statuses].map(([index, status]) => ({ index, status }));
    const seconds = this.#seconds();
    return makeJwt(
      signer,
      { alg: 'ES256', typ: 'statuslist+jwt', x5c: this.statusSigner.map(({ certificate }) => certificate) },
      {
        sub: `${this.url}/status/1`,
        iat: seconds,
        exp: seconds + 3600,
        ttl: 60,
        status_list: { bits: 2, lst: compressList(packEntries(2, this.capacity, entries)) },
      },
    );
  }
}
