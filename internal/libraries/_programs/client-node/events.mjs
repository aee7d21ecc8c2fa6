import * as k8s from '@kubernetes/client-node';
import { parseResource, reason, state } from './names.mjs';

// patience is how long a watch may take to tell what is waited for, in milliseconds.
const patience = 15_000;

// within is the promise, or an error after the patience. trouble says why, if it is known.
async function within(promise, what, trouble) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      const why = trouble();
      reject(new Error(`no ${what} within ${patience / 1000}s${why ? `: ${why}` : ''}`));
    }, patience);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// follow runs an informer, prints what it tells of one object, and returns after the event.
export async function follow(config, resource, name, event) {
  const of = parseResource(resource);
  const client = config.makeApiClient(k8s.CustomObjectsApi);
  const path = `/apis/${of.group}/${of.version}/${of.plural}`;
  const informer = k8s.makeInformer(config, path, () => client.listClusterCustomObject(of));
  let trouble;
  const told = new Promise((resolve) => {
    for (const [verb, word] of [['add', 'ADDED'], ['update', 'UPDATED'], ['delete', 'DELETED']]) {
      informer.on(verb, (o) => {
        if (o.metadata.name !== name) {
          return;
        }
        console.log(`${word} ${name} ${o.metadata.labels?.[state] ?? ''}`);
        if (word === event) {
          resolve();
        }
      });
    }
  });
  // The informer ends at an error: whoever uses it has to start it again.
  informer.on('error', (err) => {
    trouble = err;
    setTimeout(() => informer.start().catch((again) => (trouble = again)), 500);
  });
  await informer.start();
  await within(told, event, () => trouble && reason(trouble));
}

// remove deletes an object while a watch looks at it.
export async function remove(config, resource, name) {
  const of = parseResource(resource);
  const client = config.makeApiClient(k8s.CustomObjectsApi);
  const { metadata } = await client.getClusterCustomObject({ ...of, name });
  let trouble;
  let gone;
  const told = new Promise((resolve) => (gone = resolve));
  const watch = await new k8s.Watch(config).watch(
    `/apis/${of.group}/${of.version}/${of.plural}`,
    { fieldSelector: `metadata.name=${name}`, resourceVersion: metadata.resourceVersion },
    (phase) => {
      if (phase === 'DELETED') {
        gone();
      }
    },
    (err) => (trouble = err),
  );
  await client.deleteClusterCustomObject({ ...of, name });
  await within(told, 'DELETED', () => trouble && reason(trouble));
  watch.abort();
  console.log(`deleted ${name}`);
}
