/**
 * Loaded into a service whose memory is looked at: says on request how many bytes are in use after a collection. The
 * channel to the parent does not keep the service running.
 */
process.on('message', () => {
  // Twice, since finalizers of the first collection may release further objects.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.send?.(heapUsed + external);
});
process.channel?.unref();
