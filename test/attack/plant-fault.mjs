/**
 * Preloaded into a service (`node --import`): what `PLANTED_FAULTS` names is changed in its sources as they are loaded. The
 * files stay as they are. A text that is not there ends the process, so that no fault is believed to be planted.
 */
import { registerHooks } from 'node:module';

const edits = JSON.parse(process.env.PLANTED_FAULTS);

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const own = edits.filter(({ file }) => url.endsWith(`/${file}`));
    if (own.length === 0) return loaded;
    return { ...loaded, source: own.reduce(withEdit, String(loaded.source)) };
  },
});

function withEdit(source, { file, from, to }) {
  if (source.split(from).length !== 2) throw new Error(`${file} has not exactly one place with: ${from}`);
  return source.replace(from, () => to);
}
