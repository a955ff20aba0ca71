import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Authorities } from '../../demo/authorities.ts';
import type { CredoWallets } from '../../support/credo.ts';
import type { Flow } from '../flows.ts';
import { isStrict } from '../tenant.ts';
import type { Answer, CredentialOfferInput, PageRequest, WalletRun, WalletUnderTest, WalletWorld } from '../wallet.ts';

type CredoOrder = Parameters<CredoWallets['serve']>[0];

const LACKING: Readonly<Partial<Record<Flow, string>>> = {
  interactive: 'it follows another draft of it',
  encrypted: 'it asks for no encryption of requests',
  severalSigners: 'it reads requests with one signature',
  validated: 'it reads no trust lists',
};

/** Credo in a separate process; it verifies credentials up to the CA of the tenant. */
export class Credo implements WalletUnderTest {
  readonly tool = {
    name: 'Credo',
    version: credoVersion(),
    about: 'the framework of the OpenWallet Foundation, which checks issuers and verifiers by their authorities',
  };
  readonly issuedElsewhere = ['haip', 'eu'] as const;
  readonly #wallets: CredoWallets;
  readonly #authorities: Authorities;

  constructor(wallets: CredoWallets, authorities: Authorities) {
    this.#wallets = wallets;
    this.#authorities = authorities;
  }

  async trust(): Promise<Record<string, unknown>> {
    return this.#authorities.provider.registered([`${this.#authorities.provider.clientId}/callback`]);
  }

  lacks(flow: Flow): string | undefined {
    return LACKING[flow];
  }

  async begin({ issuerProfile, anchors }: WalletWorld): Promise<WalletRun> {
    const { clientId, signer } = this.#authorities.provider;
    const key = signer.privateKey.export({ format: 'jwk' });
    const provider = { clientId, key, certificate: signer.certificate };
    const base = { wallet: randomUUID(), anchors, ...(isStrict(issuerProfile) && { provider }) };
    return new Run((order) => this.#wallets.serve({ ...base, ...order }));
  }

  close(): Promise<void> {
    return this.#wallets.close();
  }
}

class Run implements WalletRun {
  readonly #serve: (order: Partial<CredoOrder>) => ReturnType<CredoWallets['serve']>;

  constructor(serve: (order: Partial<CredoOrder>) => ReturnType<CredoWallets['serve']>) {
    this.#serve = serve;
  }

  async accept({ offer, grant, txCode, batch }: CredentialOfferInput): Promise<number> {
    const optionalFields = { ...(txCode !== undefined && { txCode }), ...(batch !== undefined && { batch }) };
    return this.#copies({ offer, flow: grant, ...optionalFields });
  }

  /** It waits for the deferred credential. */
  async collect(): Promise<number> {
    return 0;
  }

  renew(): Promise<number> {
    return this.#copies({ renew: true });
  }

  async present(request: string): Promise<Answer> {
    const { presented } = await this.#serve({ requests: [{ request }] });
    const [{ status, body } = {} as { status: number; body: unknown }] = presented as { status: number; body: unknown }[];
    const { redirect_uri: redirectUri } = (body ?? {}) as { redirect_uri?: string };
    return { isAccepted: status === 200, redirectUri };
  }

  async presentToPage({ requests }: PageRequest, origin: string): Promise<Readonly<Record<string, unknown>>> {
    const { presented } = await this.#serve({ requests: [{ request: requests[0]?.data ?? {}, origin }] });
    return presented[0]?.data ?? {};
  }

  async #copies(order: Partial<CredoOrder>): Promise<number> {
    const { credentials } = await this.#serve(order);
    return credentials.reduce((sum, { copies }) => sum + copies, 0);
  }
}

function credoVersion(): string {
  const file = new URL('../../wallets/credo/package.json', import.meta.url);
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> };
  return dependencies['@credo-ts/openid4vc'] ?? '?';
}
