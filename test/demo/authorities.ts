import 'reflect-metadata';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Jwk } from '@openid4vc/oauth2';
import { type HolderKey, now } from '../support/raw-wallet.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { pem } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';
import { WalletProvider } from '../support/wallet-provider.ts';
import type { WalletUnit } from '../wallets/openid4vc/wallet-unit.ts';

const LIST_TYPE = 'http://uri.etsi.org/19602/LoTEType';

/** Two trust lists for wallets: the CAs of access certificates, and the registrars. */
const LISTS = {
  '/access-certificates': { kind: 'EUWRPACProvidersList', service: 'WRPAC/Issuance' },
  '/registrars': { kind: 'EUWRPRCProvidersList', service: 'WRPRC/Issuance' },
} as const;

/** Lifetime of the status of a wallet instance. */
const STATUS_SECONDS = 31 * 86_400;

/**
 * The infrastructure of a European wallet on this machine: a CA for access certificates, a registrar, a wallet provider,
 * and the operator of their trust lists.
 */
export class Authorities {
  readonly provider: WalletProvider;
  readonly registrar: TestRegistrar;
  readonly listAddress: string;
  readonly #closeLists: () => Promise<void>;
  #units = 0;

  private constructor(provider: WalletProvider, registrar: TestRegistrar, lists: Pick<Authorities, 'listAddress' | 'close'>) {
    this.provider = provider;
    this.registrar = registrar;
    this.listAddress = lists.listAddress;
    this.#closeLists = lists.close;
  }

  static async start(): Promise<Authorities> {
    const provider = await WalletProvider.start();
    const registrar = await TestRegistrar.start();
    return new Authorities(provider, registrar, await publishLists(registrar, provider));
  }

  async close(): Promise<void> {
    await Promise.all([this.provider.close(), this.registrar.close(), this.#closeLists()]);
  }

  /** Signer of the trust lists; DER in standard base64. */
  get operator(): string {
    return this.provider.operator.certificate;
  }

  /**
   * Properties of an issuance configuration: the trusted wallet providers, and the source of the registration certificate.
   */
  issuer(): Record<string, unknown> {
    return { ...this.provider.configuration(), registrationCert: { body: {} } };
  }

  /** An installation of the provider's wallet. Both of its attestations have the same place in the provider's status list. */
  newUnit(): { readonly unit: WalletUnit; revoke(): void } {
    const { provider } = this;
    const index = this.#units++;
    // EUDI TS3 1.5 sections 2.3.1 and 2.3.2
    const maintained = { status: provider.status(index), exp: now() + STATUS_SECONDS };
    const toHolderKey = (jwk: Jwk) => ({ jwk }) as unknown as HolderKey;
    const unit: WalletUnit = {
      clientId: provider.clientId,
      attestation: (instance) => provider.attestation(toHolderKey(instance), { payload: { client_status: maintained } }),
      keyAttestation: (keys, nonce) =>
        provider.keyAttestation(keys.map(toHolderKey), { nonce, payload: { key_storage_status: maintained } }),
    };
    return { unit, revoke: () => provider.statuses.set(index, 1) };
  }
}

async function publishLists(registrar: TestRegistrar, { operator }: WalletProvider) {
  const server = createServer((request, response) => {
    const list = LISTS[request.url as keyof typeof LISTS];
    if (list === undefined) return response.writeHead(404).end();
    const services = [{ type: list.service, certificates: [registrar.ca.certificate] }];
    const scheme = { LoTEType: `${LIST_TYPE}/${list.kind}` };
    const options = { entities: [{ name: 'Registrar', services }], signer: operator, scheme };
    return response.writeHead(200, { 'Content-Type': 'application/jwt' }).end(trustList(options, now()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    listAddress: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Certificates as configurations take them. */
export const toPem = (certificate: string): string => pem({ certificate } as Parameters<typeof pem>[0]);
