import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** Preloaded into a process, which writes its loaded modules whenever it gets the signal. */
const FILE = process.env['LOADED_FILE'] ?? '';
const loadedUrls = new Set<string>();
registerHooks({
  load(url, context, next) {
    loadedUrls.add(url);
    return next(url, context);
  },
});
process.on('SIGUSR2', () => {
  const { moduleLoadList } = process as unknown as { readonly moduleLoadList: readonly string[] };
  writeFileSync(FILE, [...loadedUrls, ...moduleLoadList].join('\n'));
});
