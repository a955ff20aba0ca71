import type { Browser } from 'playwright-core';
import { ConsoleTickets } from '../../../application/console/console-tickets.ts';
import { buildConsole } from '../../support/console.ts';
import { startTestService, type TestService } from '../../support/test-service.ts';
import { openWindow, type Watched } from './browser.ts';

/** A service with the console as it is built now, and windows of people who look at it. */
export class ConsoleService {
  readonly service: TestService;
  readonly browser: Browser;

  private constructor(service: TestService, browser: Browser) {
    this.service = service;
    this.browser = browser;
  }

  static async start(browser: Browser, environment: Readonly<Record<string, string>> = {}): Promise<ConsoleService> {
    buildConsole();
    return new ConsoleService(await startTestService(environment), browser);
  }

  get address(): string {
    return this.service.address;
  }

  /** Opens a page as the person who started the service. */
  async open(page: string, look: Parameters<typeof openWindow>[2] = {}): Promise<Watched> {
    const watched = await openWindow(this.browser, this.address, look);
    const ticket = this.service.service.container.get(ConsoleTickets).issue();
    await watched.page.goto(`${this.address}/console#${page}?ticket=${ticket}`);
    return watched;
  }

  /** Opens a page as a client. */
  async openAs(page: string, clientId: string, secret: string, look: Parameters<typeof openWindow>[2] = {}) {
    const watched = await openWindow(this.browser, this.address, look);
    await watched.page.goto(`${this.address}/console#${page}`);
    await watched.page.getByLabel('Client id').fill(clientId);
    await watched.page.getByLabel('Client secret').fill(secret);
    await watched.page.getByRole('button', { name: 'Log in' }).click();
    await watched.page.locator('main#content').waitFor();
    return watched;
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.browser.close();
  }
}
