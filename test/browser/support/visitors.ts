import type { Page } from 'playwright-core';
import { createTenant } from '../../support/test-service.ts';
import { openBrowser, type openWindow, type Watched } from './browser.ts';
import { ConsoleService } from './console-service.ts';

const SECRET = 'a-secret-of-this-very-client';

/** A service with a tenant, and windows of its clients, each with the roles that a test wants. */
export class Visitors {
  readonly served: ConsoleService;
  /** Of the administrator of the tenant, who has all roles. */
  readonly token: string;
  readonly tenantId: string;
  readonly #open: Watched[] = [];
  #clients = 0;

  private constructor(served: ConsoleService, { id, token }: { readonly id: string; readonly token: string }) {
    this.served = served;
    this.token = token;
    this.tenantId = id;
  }

  /** @returns undefined where there is no browser. */
  static async start(environment: Readonly<Record<string, string>> = {}): Promise<Visitors | undefined> {
    const browser = await openBrowser();
    if (browser === undefined) return undefined;
    const served = await ConsoleService.start(browser, environment);
    return new Visitors(served, await createTenant(served.service, 'acme'));
  }

  async as(roles: readonly string[], place: string, look: Parameters<typeof openWindow>[2] = {}): Promise<Page> {
    const clientId = `visitor-${++this.#clients}`;
    const json = { clientId, roles, secret: SECRET };
    const made = await this.served.service.call('POST', '/client', { token: this.token, json });
    if (made.status !== 201) throw new Error(made.text);
    const watched = await this.served.openAs(place, clientId, SECRET, look);
    this.#open.push(watched);
    return watched.page;
  }

  async asOperator(place: string, look: Parameters<typeof openWindow>[2] = {}): Promise<Page> {
    const watched = await this.served.open(place, look);
    this.#open.push(watched);
    await watched.page.locator('main#content').waitFor();
    return watched.page;
  }

  /** Closes the windows. @returns what happened in them that must not. */
  async leave(): Promise<string[]> {
    const windows = this.#open.splice(0);
    await Promise.all(windows.map(({ context }) => context.close()));
    return windows.flatMap(({ faults }) => faults);
  }
}

export const MANAGER = ['presentation:manage', 'issuance:manage'];
export const CARD = 'urn:example:card:1';
export const NAMESPACE = 'org.example.card';

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** A question for a card as SD-JWT VC and one as an mdoc. */
export async function makeQuestion(visitors: Visitors, id: string, more: object = {}): Promise<void> {
  const credentials = [
    { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [CARD] }, claims: [{ path: ['name'] }] },
    { id: 'plastic', format: 'mso_mdoc', meta: { doctype_value: `${NAMESPACE}.1` }, claims: [{ path: [NAMESPACE, 'name'] }] },
  ];
  const json = { id, dcql_query: { credentials }, ...more };
  const { service } = visitors.served;
  const made = await service.call('POST', '/verifier/config', { token: visitors.token, json });
  if (made.status !== 201) throw new Error(made.text);
}
