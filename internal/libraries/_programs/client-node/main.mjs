// Program client-node does what programs do that use @kubernetes/client-node, the JavaScript client,
// and says what came of it:
//
//	client-node --context CONTEXT OPERATION [WORD…]
//
// The kubeconfig is that of $KUBECONFIG. Exit code 1 says that the operation failed; standard error
// then has the reason.
import * as k8s from '@kubernetes/client-node';
import { version } from '@kubernetes/client-node/package.json';
import { discover } from './discovery.mjs';
import { follow, remove } from './events.mjs';
import { reason } from './names.mjs';
import { apply, custom, object, typed } from './writes.mjs';

const operations = {
  discovery: { words: '', act: discover },
  object: { words: 'NAME, and an object on standard input', act: object },
  apply: { words: 'NAME, and an object on standard input', act: apply },
  custom: { words: 'RESOURCE.VERSION.GROUP NAME, and an object on standard input', act: custom },
  delete: { words: 'RESOURCE.VERSION.GROUP NAME', act: remove },
  inform: { words: 'RESOURCE.VERSION.GROUP NAME EVENT', act: follow },
  typed: { words: 'NAMESPACE NAME', act: typed },
};

async function main(words) {
  if (words[0] === '--version') {
    console.log(`client-node v${version}`);
    return;
  }
  if (words[0] !== '--context' || words.length < 3) {
    throw new Error('which operation? write client-node --context CONTEXT OPERATION [WORD…]');
  }
  const [, context, name, ...rest] = words;
  const operation = operations[name];
  if (!operation) {
    throw new Error(`there is no operation "${name}"`);
  }
  const takes = operation.words.split(',')[0].split(' ').filter(Boolean);
  if (takes.length !== rest.length) {
    throw new Error(`${name} takes ${operation.words}`);
  }
  const config = new k8s.KubeConfig();
  config.loadFromDefault();
  config.setCurrentContext(context);
  await operation.act(config, ...rest);
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (err) => {
    console.error(`error: ${reason(err)}`);
    process.exit(1);
  },
);
