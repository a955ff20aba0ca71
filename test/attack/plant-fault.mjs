/**
 * Preloaded into a service (`node --import`): what stands in `PLANTED_FAULT` is changed in its sources as they are loaded.
 * The files stay as they are. A text that is not there ends the process, so that no fault is believed to be planted.
 */
import { registerHooks } from 'node:module';

const edits = JSON.parse(process.env.PLANTED_FAULT);

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const edit = edits.find(({ file }) => url.endsWith(`/${file}`));
    if (edit === undefined) return loaded;
    const { file, from, to } = edit;
    const source = String(loaded.source);
    if (source.split(from).length !== 2) throw new Error(`${file} has not exactly one place with: ${from}`);
    return { ...loaded, source: source.replace(from, () => to) };
  },
});
