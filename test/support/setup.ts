import 'reflect-metadata';
import { Socket } from 'node:net';
import { useCompileCache } from './compile-cache.ts';
import { beginTest, endFile, endTest } from './lifetimes.ts';
import { createRunFolder, useRunFolder } from './run-folder.ts';

useCompileCache();
useRunFolder();

const cloneFolder = process.cwd();
const originalFetch = globalThis.fetch;
const originalConnect = Socket.prototype.connect;

function forbidden(): never {
  throw new Error('a unit test reached for the network');
}

/** In `test/unit` there is no network: neither `fetch` nor a socket. */
export const mochaHooks = {
  /**
   * Relative paths, such as the default `./data`, must not reach the clone, which may contain data of a developer's
   * service.
   */
  beforeAll() {
    process.chdir(createRunFolder());
  },
  beforeEach(this: Mocha.Context) {
    beginTest();
    if (!this.currentTest?.file?.includes('/test/unit/')) return;
    globalThis.fetch = forbidden as never;
    Socket.prototype.connect = forbidden as never;
  },
  afterEach() {
    globalThis.fetch = originalFetch;
    Socket.prototype.connect = originalConnect;
    endTest();
  },
  afterAll() {
    process.chdir(cloneFolder);
    endFile();
  },
};
